"""How the questions look, in both of JupyterLab's themes."""

from __future__ import annotations

PANEL_CLASS = "lesson-panel"
STATIC_CLASS = "lesson-static"

# A saved notebook has two outputs a question: readable HTML, and the live panel. While the panel is alive it
# replaces the HTML; when its kernel is gone JupyterLab shows an error in its place, which becomes an
# invitation.
_STATIC = """
div.lesson-static pre { margin: 0 0 1em }
.jp-OutputArea-child:has(.lesson-static) + .jp-OutputArea-child
.jp-OutputArea-output.jupyter-widgets:not(:has(*)) { font-size: 0 }
.jp-OutputArea-child:has(.lesson-static) + .jp-OutputArea-child
.jp-OutputArea-output.jupyter-widgets:not(:has(*))::after {
  content: "Run this cell to answer here."; font-size: var(--jp-ui-font-size1, 13px);
  color: var(--jp-ui-font-color1, #333) }
"""

_PANEL = """
.jp-OutputArea-child:has(.lesson-static):has(+ .jp-OutputArea-child .lesson-panel) {
  display: none !important }
.lesson-panel { max-width: 46em; padding: 2px; overflow: visible }
.lesson-panel .lesson-question {
  border: 1px solid var(--jp-border-color2, #ccc); border-radius: 6px; padding: 12px 18px 14px;
  margin: 4px 0 8px; background: var(--jp-layout-color1, #fff); overflow: visible }
.lesson-panel .widget-html, .lesson-panel .widget-html-content { height: auto; overflow: visible; margin: 0;
  font-size: var(--jp-content-font-size1, 14px); line-height: 1.5;
  color: var(--jp-content-font-color1, #212121) }
.lesson-panel p { margin: 0 0 .5em }
.lesson-panel pre { margin: .3em 0 .6em; padding: .6em .8em; border-radius: 4px; overflow-x: auto;
  background: var(--jp-layout-color2, #eee); line-height: 1.45 }
.lesson-panel code { font-family: var(--jp-code-font-family, monospace); font-size: .93em;
  background: var(--jp-layout-color2, #eee); color: inherit; padding: 0 .25em; border-radius: 3px;
  white-space: pre-wrap; overflow-wrap: anywhere }
.lesson-panel pre code { padding: 0; background: none; white-space: pre }
.lesson-panel .widget-radio { height: auto; margin: 0 0 8px; width: 100% }
.lesson-panel .widget-radio-box { width: 100%; margin: 0 !important; padding: 0 }
.lesson-panel .widget-radio-box label { display: flex; flex-direction: row-reverse; justify-content: flex-end;
  align-items: baseline; gap: .6em; height: auto; min-height: 0; padding: 3px 6px; margin: 0;
  border-radius: 4px; white-space: normal; overflow: visible; line-height: 1.5; cursor: pointer;
  text-align: left; font-size: var(--jp-content-font-size1, 14px);
  color: var(--jp-content-font-color1, #212121); width: auto }
.lesson-panel .widget-radio-box label:hover { background: var(--jp-layout-color2, #eee) }
.lesson-panel .widget-radio-box input { flex: none; margin: 0; position: relative; top: 2px; float: none;
  width: 15px; height: 15px; accent-color: var(--jp-brand-color1, #1976d2) }
.lesson-panel input:focus-visible, .lesson-panel button:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 2px; box-shadow: none }
.lesson-panel .widget-hbox { gap: 8px; flex-wrap: wrap; overflow: visible; margin: 0 }
.lesson-panel button { height: 30px; line-height: 28px; margin: 0; padding: 0 14px;
  border-radius: 4px; overflow: visible; border: 1px solid var(--jp-border-color0, #888);
  background: var(--jp-layout-color2, #eee); color: var(--jp-ui-font-color1, #212121); box-shadow: none }
.lesson-panel .lesson-answer { margin-top: 12px; padding: .1em 0 .1em .9em;
  border-left: 3px solid var(--jp-border-color0, #888) }
.lesson-panel .lesson-answer p:last-child { margin-bottom: 0 }
.lesson-panel .lesson-right { border-left-color: var(--jp-success-color1, #388e3c) }
.lesson-panel .lesson-other { border-left-color: var(--jp-warn-color1, #b45309) }
"""


def panel_style() -> str:
    """Return the style sheet that a live panel brings along."""
    return f"<style>{_PANEL}</style>"


def static_style() -> str:
    """Return the style sheet of the saved HTML; a viewer that drops it loses nothing that is said."""
    return f"<style>{_STATIC.strip()}</style>"
