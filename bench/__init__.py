"""Benchmarks, one file a question. Each measures ours and a peer or physical limit in the same run."""
