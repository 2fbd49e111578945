"""The benchmarks: what casenotes does beside the same work written by hand. See docs/performance.md."""
