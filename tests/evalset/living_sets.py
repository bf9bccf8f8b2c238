"""Sets that live: made, owned and run cell by cell as the product does it, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.components.clock import SystemClock
from steelyard.engine.events import RunOutcome
from steelyard.evalset.expansion import Cell
from steelyard.evalset.keys import matrix_key
from steelyard.evalset.layout import cell_folder
from steelyard.evalset.set_document import PinnedAgent, PinnedPack, SetCell, SetDocument
from steelyard.evalset.set_folder import OwnedSet, create_set, own_set
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.submissions import Submission
from tests.engine.launching import request, run_all

CLOCK = SystemClock()


@dataclass
class LivingSet:
    """A set that a test runs step by step; `owned` is None once nobody runs it."""

    root: Path
    tmp_path: Path
    owned: OwnedSet | None
    submission: Submission | None = None

    @property
    def opened(self) -> OpenedSet:
        return OpenedSet(self.root)

    def begin(
        self,
        kind: str = "submit",
        *,
        cells: Sequence[int] | None = None,
        budget_usd: float | None = None,
    ) -> None:
        if self.owned is None:
            self.owned = own_set(OpenedSet(self.root))
        wanted = [one.index for one in self.opened.cells] if cells is None else cells
        self.submission = self.owned.begin(kind, wanted, budget_usd, clock=CLOCK)

    def run(self, index: int, *, tasks: int = 2, run_id: str | None = None, **rest: Any) -> Path:
        """Run a cell to its end, and give its run directory."""
        cell = self.opened.cells[index]
        one = request(
            cell.folder,
            benchmark={"tasks": tasks, **rest.pop("benchmark", {})},
            **({} if run_id is None else {"output": {"run_id": run_id}}),
            **rest,
        )
        result = run_all(self.tmp_path, one, runtime={"results_dir": str(self.opened.files.cells)})
        return result.requests[0].run_dir

    def run_all(self, **rest: Any) -> None:
        for cell in self.opened.cells:
            self.run(cell.index, **rest)

    def end(
        self,
        outcome: RunOutcome = RunOutcome.COMPLETED,
        exit_status: int = 0,
        reason: str | None = None,
    ) -> None:
        assert self.owned is not None
        assert self.submission is not None
        self.owned.end(self.submission, outcome, exit_status, reason, clock=CLOCK)
        self.let_go()

    def let_go(self) -> None:
        """As when the process dies."""
        if self.owned is not None:
            self.owned.release()
            self.owned = None


def living_set(
    tmp_path: Path,
    *,
    packs: Sequence[str] = ("refunds",),
    agents: Sequence[str] = ("base", "new"),
    models: Sequence[str] | None = None,
    repeats: int = 2,
    scanners: Sequence[str] = (),
    begins: bool = True,
    set_id: str | None = None,
) -> LivingSet:
    """Make a set that this process owns, and begin its submission."""
    pinned = [PinnedPack(name, name, 1, "d" * 64, f"uuid-{name}", f"/{name}") for name in packs]
    deployed = [PinnedAgent(name, name, f"uuid-{name}", None, "e" * 64) for name in agents]
    cells: list[SetCell] = []
    for pack in pinned:
        for agent in deployed:
            for model in models or (None,):
                for repeat in range(1, repeats + 1):
                    key = matrix_key(pack.ref, agent.ref, model, repeat)
                    one = Cell(len(cells), key, pack.ref, agent.ref, None, model, repeat, repeat)
                    folder = cell_folder(one.index, key)
                    cells.append(SetCell(one.index, folder, one, pack, agent))
    document = SetDocument(
        set_id="",
        name="nightly",
        created_at="",
        manifest={"schema": "evalset/v1", "name": "nightly", "scanners": list(scanners)},
        manifest_file=None,
        packs=tuple(pinned),
        agents=tuple(deployed),
        cells=tuple(cells),
    )
    owned = create_set(tmp_path / "sets" / "nightly", document, set_id=set_id, clock=CLOCK)
    made = LivingSet(owned.opened.root, tmp_path, owned)
    if begins:
        made.begin()
    return made
