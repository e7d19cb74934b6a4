"""A static site of the chapters: read anywhere, without a kernel or a network, with the simulations alive."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat

from autograder.authoring.build import chapters, solution_file, student_file
from autograder.messages import UsageError
from autograder.student.overview import Chapter, course

LARGEST = 15 * 2**20
_STYLE = Path(__file__).with_name("site.css")


def build_site(root: Path, target: Path, solved: bool = False) -> list[Path]:
    """Write the site into ``target``, a new folder or one that an earlier site left; return its pages.

    ``solved`` shows the solutions and what their checks say; otherwise answers are the students' gaps. Raises
    UsageError when ``target`` holds something else, and when the site would be larger than 15 MB.
    """
    if target.exists() and any(target.iterdir()) and not (target / "site.css").is_file():
        raise UsageError(f"{target} is not empty and holds no earlier site; give another folder.")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    listed = course(root)
    pages = [target / "index.html"]
    pages[0].write_text(_index(listed, solved), encoding="utf-8")
    for place, name in enumerate(chapters(root)):
        page = target / f"{name}.html"
        page.write_text(_page(_notebook(root, name, solved), listed, place), encoding="utf-8")
        pages.append(page)
    (target / "site.css").write_text(_STYLE.read_text(encoding="utf-8") + _code_colours(), encoding="utf-8")
    size = sum(file.stat().st_size for file in target.iterdir())
    if size > LARGEST:
        raise UsageError(f"the site has {size / 2**20:.1f} MB, more than {LARGEST // 2**20}: is an output too large?")
    return pages


def _notebook(root: Path, chapter: str, solved: bool) -> Any:
    """Return the notebook to show: the students' one with the outputs of the solved one, but for answers and checks."""
    done = nbformat.read(solution_file(root, chapter), as_version=4)
    if solved:
        return done
    blank = nbformat.read(student_file(root, chapter), as_version=4)
    outputs = {cell.id: cell.outputs for cell in done.cells if cell.cell_type == "code"}
    exercises = False
    for cell in blank.cells:
        if cell.cell_type != "code":
            continue
        settings = cell.metadata.get("nbgrader", {})
        exercises = exercises or bool(settings)
        cell.outputs = [] if settings else outputs.get(cell.id, [])
        cell.execution_count = None
    return blank


def _page(notebook: Any, listed: list[Chapter], place: int) -> str:
    from nbconvert.exporters import HTMLExporter

    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
    exporter = HTMLExporter(template_name="basic", embed_images=True, exclude_input_prompt=True)
    exporter.exclude_output_prompt = True
    exporter.exclude_anchor_links = True
    body, _ = exporter.from_notebook_node(notebook)
    chapter = listed[place]
    near = []
    if place:
        near.append(
            f'<a rel="prev" href="{listed[place - 1].folder}.html">← {html.escape(listed[place - 1].title)}</a>'
        )
    near.append('<a href="index.html">All chapters</a>')
    if place + 1 < len(listed):
        near.append(
            f'<a rel="next" href="{listed[place + 1].folder}.html">{html.escape(listed[place + 1].title)} →</a>'
        )
    links = f'<nav aria-label="Chapters">{" ".join(near)}</nav>'
    # Links from one notebook to another become links from page to page.
    body = re.sub(r'href="(?:\.\./)?(ch\d\d_\w+)/\1\.ipynb"', r'href="\1.html"', body)
    # A region that scrolls has to be reachable by keyboard, and a code block can be wider than a phone.
    region = r'<div class="\1" tabindex="0" role="region" aria-label="Code">'
    body = re.sub(r'<div class="(\s*highlight[^"]*)">', region, body)
    return _document(chapter.title, f"{links}<main>{body}</main>{links}")


def _link(chapter: Chapter, relation: str, form: str) -> str:
    return f'<a rel="{relation}" href="{chapter.folder}.html">{form.format(html.escape(chapter.title))}</a>'


def _index(listed: list[Chapter], solved: bool) -> str:
    rows = "".join(
        f'<tr><td><a href="{chapter.folder}.html">{html.escape(chapter.title)}</a></td>'
        f"<td>about {chapter.minutes} min</td>"
        f"<td>{', '.join(f'<code>{name}</code>' for name in chapter.exercises)}</td></tr>"
        for chapter in listed
    )
    said = "With the solutions." if solved else "Answers are left to you: they are checked in JupyterLab."
    return _document(
        "Deep Framework Mechanics",
        "<main><h1>Deep Framework Mechanics</h1><p>What <code>torch.nn.Module</code> does inside. These pages are the "
        f"chapters to read; their figures play without a kernel and without a network. {said}</p>"
        '<table><thead><tr><th scope="col">chapter</th><th scope="col">time</th><th scope="col">exercises</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></main>",
    )


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(title)}</title><link rel="stylesheet" href="site.css"></head><body>{body}</body></html>\n'
    )


def _code_colours() -> str:
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="a11y-light" if _has_style("a11y-light") else "xcode").get_style_defs(".highlight")
    dark = HtmlFormatter(style="a11y-dark" if _has_style("a11y-dark") else "github-dark").get_style_defs(".highlight")
    return f"\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n.highlight {{ background: none; }}\n"


def _has_style(name: str) -> bool:
    from pygments.styles import get_all_styles

    return name in set(get_all_styles())
