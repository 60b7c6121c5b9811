"""What the stage `check` looks at: one module per task, and what attacks measure."""
