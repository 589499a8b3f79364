"""What an administrator does first: our files installed, with their valves."""
