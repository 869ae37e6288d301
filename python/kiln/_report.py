"""kiln.Device and kiln.Report."""
from __future__ import annotations

from ._cached import TIERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Device:
    """A device that a driver lists."""
    __slots__ = ("id", "kind", "name", "driver", "usable", "why_not")

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.id: str = facts["id"]
        self.kind: str = facts["kind"]
        self.name: str = facts["name"]
        self.driver: str = facts["driver"]
        self.usable: bool = facts["usable"]
        self.why_not: str | None = facts["why_not"]

    def __repr__(self) -> str:
        return f"<kiln.Device {self.id}: {self.name}, {self.driver}{'' if self.usable else ', not usable: ' + str(self.why_not)}>"


class Report:
    """What a run took, and where. Times are in milliseconds, medians of the runs."""
    __slots__ = ("name", "device", "variant", "tier", "runs", "verified", "wall_ms", "queue_ms", "build_ms", "upload_ms",
                 "device_ms", "readback_ms", "gflops", "max_rel_error", "error_bound", "copied_bytes", "steps")

    def __init__(self, name: str, facts: tuple[Any, ...], steps: Sequence[dict[str, Any]] = ()) -> None:
        self.name = name
        self.steps = steps  # of a pipeline, as in `kiln run --json`
        self.device: str = facts[0]
        self.variant: str = facts[1]
        self.tier: str = TIERS[facts[2]]
        self.runs: int = facts[3]
        self.verified: bool | None = None if facts[4] == 0 else facts[4] == 1
        (self.wall_ms, self.queue_ms, self.build_ms, self.upload_ms, self.device_ms,
         self.readback_ms) = (value / 1e6 for value in facts[5:11])
        self.gflops: float | None = facts[11] / facts[5] if facts[5] and facts[11] else None
        self.max_rel_error: float = facts[12]
        self.error_bound: float = facts[13]
        self.copied_bytes: int = facts[14]  # of arrays whose address is not a multiple of 64

    def __repr__(self) -> str:
        rate = f", {self.gflops:.1f} GFLOP/s" if self.gflops else ""
        check = {None: "", True: ", verified", False: ", WRONG"}[self.verified]
        program = "built" if self.tier == "built" else f"from {self.tier or 'nowhere'}"
        return f"<kiln.Report {self.name} on {self.device}: {self.wall_ms:.3f} ms{rate}, program {program}{check}>"

    def _repr_html_(self) -> str:
        import html
        rows = [("device", self.device), ("variant", self.variant), ("program from", self.tier), ("runs", self.runs),
                ("wall", f"{self.wall_ms:.3f} ms"), ("build", f"{self.build_ms:.3f} ms"),
                ("upload", f"{self.upload_ms:.3f} ms"), ("device time", f"{self.device_ms:.3f} ms"),
                ("readback", f"{self.readback_ms:.3f} ms")]
        if self.gflops:
            rows.append(("rate", f"{self.gflops:.1f} GFLOP/s"))
        if self.verified is not None:
            rows.append(("verified", f"{self.verified}, error {self.max_rel_error:.2g} of at most {self.error_bound:.2g}"))
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
        for step in self.steps:
            said = f"{step['op']}, {step['variant']}, program from {step['tier']}, {step['rounds']} rounds"
            cells += f"<tr><th>step {html.escape(step['name'])}</th><td>{html.escape(said)}</td></tr>"
        return f"<table><caption>{html.escape(self.name)}</caption>{cells}</table>"
