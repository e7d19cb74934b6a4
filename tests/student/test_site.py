"""The static site: every link leads somewhere, nothing is asked of a network, and the figures play."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.messages import UsageError
from autograder.student.site import LARGEST, build_site
from tests.jupyterlab_server import chromium, needs_chromium


class _Links(HTMLParser):
    """Collects what a page points at, and its ids."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.images: list[dict] = []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        found = dict(attributes)
        self.targets.extend(found[name] for name in ("href", "src") if found.get(name))
        self.ids.add(found.get("id") or "")
        if tag == "img":
            self.images.append(found)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The site as students get it, built once."""
    target = tmp_path_factory.mktemp("out") / "site"
    build_site(root, target)
    return target


def _read(page: Path) -> _Links:
    links = _Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def test_every_link_leads_to_a_page_and_every_picture_has_words(site: Path) -> None:
    pages = {page.name: _read(page) for page in site.glob("*.html")}
    assert len(pages) == 1 + len({name for name in pages if name.startswith("ch")}) >= 5
    for name, links in pages.items():
        assert all(image.get("alt") for image in links.images), name
        for target in links.targets:
            if target.startswith(("data:", "https://pytorch.org", "https://docs.pytorch.org")):
                continue
            file, _, anchor = target.partition("#")
            assert (site / (file or name)).is_file(), f"{name} links to {target}"
            assert not anchor or anchor in pages[file or name].ids, f"{name} links to {target}"


def test_no_solution_is_in_it_unless_asked_for(site: Path, root: Path, tmp_path: Path) -> None:
    page = (site / "ch03_buffers_and_state.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert 'raise NotImplementedError("my_batchnorm")' in text and "public checks" not in text
    build_site(root, tmp_path / "solved", solved=True)
    assert "public checks 31 of 31" in (tmp_path / "solved" / "ch03_buffers_and_state.html").read_text(encoding="utf-8")


def test_it_is_small_and_made_again_in_place(site: Path, root: Path) -> None:
    assert sum(file.stat().st_size for file in site.iterdir()) < LARGEST
    before = {file.name: file.read_bytes() for file in site.iterdir()}
    build_site(root, site)
    assert {file.name: file.read_bytes() for file in site.iterdir()} == before


def test_a_folder_with_something_else_in_it_is_left_alone(root: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(UsageError, match="is not empty and holds no earlier site"):
        build_site(root, tmp_path)
    assert main(["site", "--to", str(tmp_path), "--root", str(root)]) == 2
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "years of work"


@pytest.mark.browser
@needs_chromium
def test_in_a_browser_the_figures_play_and_axe_finds_no_serious_fault(site: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
    with chromium() as page:
        for dark in ("light", "dark"):
            page.emulate_media(color_scheme=dark, reduced_motion="reduce")
            for file in sorted(site.glob("*.html")):
                page.goto(file.as_uri())
                if file.name.startswith("ch"):
                    player = page.locator("[data-host] .player").first
                    player.focus()
                    page.keyboard.press("Home")
                    page.keyboard.press("ArrowRight")
                    assert player.locator(".count").inner_text().startswith("2 / ")
                    assert ("dark" in player.get_attribute("class").split()) is (dark == "dark")
                found = axe.Axe().run(page, options=rules).response["violations"]
                serious = [
                    (f["id"], f["nodes"][0]["html"][:160]) for f in found if f["impact"] in ("serious", "critical")
                ]
                assert serious == [], f"{file.name}, {dark}"
        assert page.seen == {"outside": [], "errors": []}
