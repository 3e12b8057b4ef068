"""Links and lists of links, as nodes of a page."""

from docutils import nodes
from sphinx.addnodes import pending_xref


def reference(domain, role, target, text, docname):
    """A link that Sphinx resolves, and warns about when it cannot."""
    return pending_xref(
        "",
        nodes.literal("", text),
        refdomain=domain,
        reftype=role,
        reftarget=target,
        refdoc=docname,
        refexplicit=False,
        refwarn=True,
    )


def link(app, start, page, anchor, text):
    """A link from one page to a place on another."""
    uri = app.builder.get_relative_uri(start, page) + (f"#{anchor}" if anchor else "")
    return nodes.reference("", "", text, internal=True, refuri=uri)


def thread(word, links):
    """A word and the links that it announces; nothing if there are none."""
    if not links:
        return []
    part = nodes.inline(classes=["thread"])
    part += [nodes.inline("", word, classes=["word"]), nodes.Text(" ")]
    for one in links:
        part += [one, nodes.Text(", ")]
    part.pop()
    return [part, nodes.Text(" ")]


def number(env, label):
    """The kind and number of a statement, such as "Theorem 3.7"."""
    known = env.proof_list[label]
    numbers = env.toc_fignumbers.get(known["docname"], {}).get(known["countertype"], {})
    return f"{known['realtype'].title()} {'.'.join(map(str, numbers.get(label, ())))}".strip()
