"""What `make run` consists of: install, supervise, wait until it is ready, stop. Knows nothing about caches."""
