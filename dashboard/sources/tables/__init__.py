"""The tables: which names and labels of each engine kind mean which canonical counter. Knows nothing about storage.

Names are canonical (exposition.canonical_name): without `_total`, `_` for `:`. What a build does not tell is
unattributed, and a remainder is never booked to a tier. Each module says where its names are from.
"""

from dashboard.sources.tables.dynamo import KVBM
from dashboard.sources.tables.llamacpp import LLAMACPP
from dashboard.sources.tables.lmcache import LMCACHE, LMCACHE_MP
from dashboard.sources.tables.sglang import SGLANG
from dashboard.sources.tables.tierscope import TIERSCOPE
from dashboard.sources.tables.trtllm import TRTLLM
from dashboard.sources.tables.vllm import VLLM, VLLM_OLD

# First match wins: our own text also speaks vLLM's names, and a vLLM with LMCache inside tells both.
DETECTION_ORDER = (TIERSCOPE, VLLM, VLLM_OLD, SGLANG, TRTLLM, LMCACHE_MP, LMCACHE, KVBM, LLAMACPP)
ADAPTERS = {str(adapter.kind): adapter for adapter in DETECTION_ORDER}
