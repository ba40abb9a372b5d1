"""Pages and their JSON: thin views over selectors and charts. They count nothing."""
