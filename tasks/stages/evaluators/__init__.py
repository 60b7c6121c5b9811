"""What a task asks of its models: how they are validated and tested."""
