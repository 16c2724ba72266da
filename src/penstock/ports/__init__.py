"""What the engine needs from the outside, as protocols that adapters fulfil."""
