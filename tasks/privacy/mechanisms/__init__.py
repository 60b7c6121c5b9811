"""What hides: one module per mechanism; private draws come through `tasks.privacy.noise`."""
