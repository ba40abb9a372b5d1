"""Every name that an embedded engine exports, from a real engine's own text."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from dashboard.engine_metrics import EngineCollector, Exposition
from tests.engine.harness import BLOCK_SIZE, make_rig


def exported_names(folder: Path) -> set[str]:
    rig = make_rig(gpu=8, cpu=16, disk=16, path=folder)
    try:
        collector = EngineCollector(rig.engine.snapshot, engine="e", model_name="m", block_size=BLOCK_SIZE)
        families = text_string_to_metric_families(Exposition(collector).text())
        return {sample.name for family in families for sample in family.samples}
    finally:
        rig.close()
