"""Opens pages in a browser and records what a report must never do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from browsers import axe_script

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Request

# Runs before the page's own scripts, where its policy does not reach.
_WATCH = """
window.watch = { refused: [] };
document.addEventListener("securitypolicyviolation", (event) =>
  window.watch.refused.push(`${event.violatedDirective}: ${event.blockedURI || event.sample}`));
"""
_SERIOUS = ("serious", "critical")


class Watch:
    """Opens files and keeps what went wrong on any of their pages."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._trouble: list[str] = []

    def open(
        self, file: Path, *, width: int = 1280, theme: Any = "light", script: bool = True, motion: bool = False
    ) -> Page:
        """The page of that file, loaded, in a window of its own; without `motion` it is asked to move nothing.

        A click waits until what is scrolled smoothly stands still, so that tests with many clicks take minutes.
        """
        context = self._browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, java_script_enabled=script,
            reduced_motion="no-preference" if motion else "reduce",
        )  # fmt: skip
        self._contexts.append(context)
        context.set_default_timeout(30_000)
        url = file.resolve().as_uri()

        def asked(request: Request) -> None:
            if request.url.partition("#")[0] != url:
                self._trouble.append(f"request: {request.url[:200]}")

        context.on("request", asked)
        context.on("weberror", lambda error: self._trouble.append(f"page error: {error.error}"))
        context.add_init_script(_WATCH)
        page = context.new_page()
        page.on("popup", lambda other: self._trouble.append(f"window opened: {other.url}"))
        page.on("dialog", self._dialog)
        page.on("console", lambda said: self._said(said.type, said.text))
        page.goto(url)
        return page

    def unfold(self, page: Page) -> None:
        """Opens what a narrow page folds."""
        page.eval_on_selector_all("details.fold", "all => { for (const one of all) one.open = true; }")

    def trouble(self) -> list[str]:
        """What went wrong since it was last asked."""
        for context in self._contexts:
            for page in context.pages:
                page.wait_for_timeout(50)  # what is under way is still said
                refused = page.evaluate("window.watch ? window.watch.refused.splice(0) : []")
                self._trouble += [f"refused by the policy: {one}" for one in refused]
        found, self._trouble = self._trouble, []
        return found

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        self._contexts = []

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning", "assert"):
            self._trouble.append(f"console {kind}: {text[:300]}")

    def _dialog(self, dialog: Any) -> None:
        self._trouble.append(f"dialog: {dialog.message[:200]}")
        dialog.dismiss()


def violations(page: Page) -> list[str]:
    """What axe calls serious or critical, one line each, with the first places."""
    page.evaluate(axe_script())
    found = page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
    return [
        f"{one['id']} ({one['impact']}) at {[node['target'] for node in one['nodes'][:5]]}: {one['help']}"
        for one in found
        if one["impact"] in _SERIOUS
    ]


def overflow_px(page: Page) -> int:
    """By how much the document is wider than the window."""
    wider: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return max(0, wider)
