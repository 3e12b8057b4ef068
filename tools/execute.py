"""Run the book's notebooks in place, each in a fresh kernel.

    python tools/execute.py [NAME ...]    e.g. kernels riesz; none means all

What depends on the machine or the moment (timings, kernel names, versions)
is removed, so that a second run changes nothing but what really changed.

The first cell of each notebook carries the macros of ``_config.yml`` for
JupyterLab, which cannot read them there; pages of the book leave it out.
"""

import sys
import time

import nbformat
import yaml
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tangle import ROOT, TangleError, pages, read_notebook

METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}


def macros():
    """The macros of the book as MyST front matter."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    tex = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    # KaTeX counts the arguments itself, MathJax wants [body, number].
    math = {f"\\{k}": v if isinstance(v, str) else v[0] for k, v in tex.items()}
    text = yaml.safe_dump({"math": math}, sort_keys=False, width=1000)
    return f"---\n{text}---"


def execute(path):
    """Run the notebook at path and write it back, without moving parts."""
    notebook = read_notebook(path)
    if notebook.cells[0].id != "macros":
        hidden = {"tags": ["remove-cell"]}
        cell = nbformat.v4.new_markdown_cell(id="macros", metadata=hidden)
        notebook.cells.insert(0, cell)
    notebook.cells[0].source = macros()
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=600,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": path.parent}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, path)


def main(names):
    book = ROOT / "book"
    known = [name for name in pages() if (book / f"{name}.ipynb").exists()]
    if unknown := sorted(set(names) - set(known)):
        print(f"no notebook in _toc.yml is called {', '.join(unknown)}")
        return 1
    for name in names or known:
        start = time.perf_counter()
        print(f"book/{name}.ipynb ...", end=" ", flush=True)
        try:
            execute(book / f"{name}.ipynb")
        except (CellExecutionError, TangleError) as error:
            print(f"failed, and was left as it was\n{error}")
            return 1
        print(f"{time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
