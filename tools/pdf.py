"""The whole book as one PDF: every page printed by the browser, then joined.

    python tools/pdf.py [NAME ...]      only these pages

The chapters and the appendices stand in the order of the contents; the API and
the tests stay on the screen. A link from one page to another becomes a link
inside the document: to the place, or to the page where it is not known.
"""

import io
import os
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, Fit, NameObject
from tangle import ROOT, pages

HTML = ROOT / "_build/html/book"
NAMES = "chromium chromium-browser google-chrome google-chrome-stable chrome msedge"
LEFT_OUT = ("api", "tests", "map")
# A link to every place that has a name: the browser notes only places that are linked to.
MARKS = """(title) => {
  document.querySelector("#jb-print-docs-body h1").textContent = title;
  const box = document.createElement("p");
  for (const place of document.querySelectorAll(".bd-article [id]")) {
    const link = document.createElement("a");
    link.href = "#" + place.id;
    link.textContent = ".";
    link.style = "text-decoration: none; color: transparent";
    box.append(link);
  }
  box.style = "font-size: 1px; line-height: 1px; color: transparent; overflow: hidden; height: 2px; margin: 0";
  document.querySelector(".bd-article").prepend(box);   // at the end it could need a page
}"""


def printed(tab, name):
    """(title, PDF) of a page."""
    tab.goto((HTML / f"{name}.html").as_uri())
    title = tab.title().partition(" \u2014 ")[0]
    tab.evaluate(MARKS, title)
    pdf = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
    return title, PdfReader(io.BytesIO(pdf))


def inside(writer, places):
    """Links between pages become links inside the document."""
    for page in writer.pages:
        for link in page.get("/Annots", ()):
            action = link.get_object().get("/A")
            if action is None:
                continue
            action = action.get_object()
            address, name = urldefrag(str(action.get("/URI", "")))
            target = unquote(urlsplit(address).path)
            if not address.startswith("file:"):
                continue
            del link.get_object()["/A"]          # no path of this machine
            if Path(target).parent.name != "book" or Path(target).stem not in places:
                continue
            first, known = places[Path(target).stem]
            where = known.get(unquote(name)) or (first, 0)
            goal = Fit.xyz(top=where[1]) if where[1] else Fit.fit()
            link.get_object()[NameObject("/Dest")] = ArrayObject(
                [writer.pages[where[0]].indirect_reference, NameObject(goal.fit_type), *(goal.fit_args or [])])


def main(names, out=ROOT / "_build/book.pdf"):
    names = names or [name for name in pages() if not name.startswith(LEFT_OUT)]
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES.split())), None)
    if browser is None:
        sys.exit("no browser: apt install chromium, or CHROMIUM=/path/to/chrome make pdf")
    writer, places = PdfWriter(), {}
    with sync_playwright() as p:
        tab = p.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(color_scheme="light")
        for name in names:
            title, pdf = printed(tab, name)
            first = len(writer.pages)
            writer.append(pdf, outline_item=title)
            places[name] = first, {
                place.lstrip("/"): (first + pdf.get_destination_page_number(one), one.top)
                for place, one in pdf.named_destinations.items()}
            print(f"{name}: {len(pdf.pages)} pages", flush=True)
    inside(writer, places)
    writer.compress_identical_objects()
    writer.write(out)
    print(f"{len(writer.pages)} pages: {out}")


if __name__ == "__main__":
    main(sys.argv[1:])
