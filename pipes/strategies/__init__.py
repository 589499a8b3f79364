"""The agents' strategies: policies, memory, thoughts, the guard of calls; all pure."""
