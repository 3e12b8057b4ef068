"""The errata: table and entries agree, each entry runs alone, links name an entry."""

import ast
import re
from itertools import pairwise

import pytest
from tangle import ROOT, chapters, pages, read_notebook

BOOK = ROOT / "book"
ERRATA = [name for name in pages() if name.startswith("errata")]
CELLS = [cell for name in ERRATA for cell in read_notebook(BOOK / f"{name}.ipynb").cells]
LABEL = re.compile(r"^\((sec-erratum-[\w-]+)\)=$", re.M)


def entries():
    """{label: its cells}; an entry ends where the next or a section begins."""
    found, cells = {}, []
    for cell in CELLS:
        if cell.cell_type == "markdown":
            if match := LABEL.match(cell.source):
                cells = found[match[1]] = []
            elif re.match(r"(?:\([\w-]+\)=\n)?##? ", cell.source):
                cells = []
        cells.append(cell)
    return found


def table():
    """(document, section, label, printed, corrected, code) of each row."""
    (text,) = (cell.source for cell in CELLS if ":class: errata" in cell.source)
    document, rows = None, []
    for line in re.findall(r"^\|(.*)\|$", text, re.M)[2:]:
        fields = [field.strip() for field in line.split("|")]
        assert len(fields) == 4, f"the row has {len(fields)} fields: {line}"
        if heading := re.fullmatch(r"\{cite:t\}`(\w+)`", fields[0]):
            document = heading[1]
            assert not any(fields[1:]), f"a document's row holds more: {line}"
            continue
        place = re.fullmatch(r"\{ref\}`([^<`]+) <([\w-]+)>`", fields[0])
        assert place, f"the row does not link to an entry: {line}"
        rows.append((document, place[1], place[2], *fields[1:]))
    return rows


ENTRIES, ROWS = entries(), table()


def text_of(label):
    """The prose of an entry."""
    cells = (cell for cell in ENTRIES[label] if cell.cell_type == "markdown")
    return "\n\n".join(cell.source for cell in cells)


def sources_of(label):
    """The documents that the entry's place names."""
    where = re.search(r"\*Where:\*(.*?)\*As printed", text_of(label), re.S)
    assert where, f"{label} does not say where and what is printed"
    return set(re.findall(r"\{cite:t\}`(\w+)`", where[1]))


def test_every_entry_begins_a_cell():
    for number, cell in enumerate(CELLS, start=1):
        if cell.cell_type == "markdown":
            for match in LABEL.finditer(cell.source):
                assert match.start() == 0, f"{match[1]} is inside cell {number}"


def test_the_table_and_the_page_have_the_same_entries():
    listed = [(document, label) for document, _, label, *_ in ROWS]
    assert len(listed) == len(set(listed)), "a row stands twice"
    written = {(source, label) for label in ENTRIES for source in sources_of(label)}
    assert set(listed) == written, (
        f"no row: {sorted(written - set(listed))}; "
        f"no entry: {sorted(set(listed) - written)}"
    )


def test_the_table_is_sorted_by_document_and_section():
    documents = list(dict.fromkeys(document for document, *_ in ROWS))
    assert documents == sorted(documents)

    def section(place):
        number = re.match(r"[\d.]+|[A-Z]\b", place)
        if not number:
            return (0,)
        parts = number[0].rstrip(".").split(".")
        return tuple(int(p) if p.isdigit() else 100 + ord(p) for p in parts)

    for before, after in pairwise(ROWS):
        if before[0] == after[0]:
            assert section(before[1]) <= section(after[1]), (before, after)


def test_every_row_is_filled_and_says_whether_code_breaks():
    for _, _, label, printed, corrected, code in ROWS:
        assert printed and corrected, f"{label}: a field is empty"
        assert code in ("yes", "no"), f"{label}: {code!r} is neither yes nor no"
    for label in ENTRIES:
        said = {row[-1] for row in ROWS if row[2] == label}
        assert len(said) == 1, f"{label}: the rows say {said}"


def silent_sides(label):
    """What an entry fails to show: an assertion before the correction (or the
    condition), and one after it."""
    cells = ENTRIES[label]
    turns = [
        number
        for number, cell in enumerate(cells)
        if cell.cell_type == "markdown"
        and re.search(r"^\*(Corrected|Condition):\*", cell.source, re.M)
    ]
    if len(turns) != 1:
        yield f"{label} has {len(turns)} corrections"
        return
    for side in (cells[: turns[0]], cells[turns[0] :]):
        code = "\n".join(cell.source for cell in side if cell.cell_type == "code")
        if not any(
            isinstance(node, ast.Assert)
            and any(isinstance(part, ast.Name) for part in ast.walk(node.test))
            for node in ast.walk(ast.parse(code))
        ):
            yield f"{label}: one side of the correction asserts nothing"


def test_entries_show_what_fails_and_then_what_holds():
    found = [line for label in ENTRIES for line in silent_sides(label)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("label", ENTRIES)
def test_entry_runs_alone(label, monkeypatch):
    monkeypatch.chdir(BOOK)
    code = "\n\n".join(c.source for c in ENTRIES[label] if c.cell_type == "code")
    exec(compile(code, label, "exec"), {"__name__": label})


# Links


def prose():
    """(page, text of its markdown) for every page but the errata."""
    for name in pages():
        path = BOOK / f"{name}.md"
        if path.exists():
            yield name, path.read_text("utf-8")
        elif name not in ERRATA:
            cells = read_notebook(BOOK / f"{name}.ipynb").cells
            yield name, "\n\n".join(c.source for c in cells if c.cell_type == "markdown")


PROSE = dict(prose())
MEANS_THE_PAGE = {"intro"}


def test_pages_link_to_an_entry_and_not_to_the_errata_as_a_whole():
    whole = r"\{doc\}`(?:[^`<]*<)?/?(?:book/)?errata>?`|\]\((?:\./)?errata(?:\.\w+)?\)"
    found = {name: re.findall(whole, text) for name, text in PROSE.items()}
    assert {name for name in found if found[name]} == MEANS_THE_PAGE, found


def test_a_chapter_links_to_every_entry():
    text = "\n".join(PROSE[name] for name in chapters())
    linked = re.findall(r"\{ref\}`(?:[^`<]*<)?(sec-erratum-[\w-]+)>?`", text)
    assert not ENTRIES.keys() - set(linked)


def test_links_to_entries_resolve():
    text = "\n".join(PROSE.values()) + (BOOK / "concordance.csv").read_text("utf-8")
    for label in re.findall(r"sec-erratum-[\w-]+", text):
        assert label in ENTRIES, f"no entry {label}"


# A list of kernels in chen_lecture6, which is no row of the concordance.
NO_ROW = {"sec-erratum-polynomial"}


def test_the_concordance_names_every_entry():
    listed = (BOOK / "concordance.csv").read_text("utf-8")
    for label in ENTRIES.keys() - NO_ROW:
        assert re.search(rf"\b{label}\b(?!-)", listed), f"no row names {label}"
