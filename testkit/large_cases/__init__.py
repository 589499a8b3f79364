"""Very large chats and answers, for the test of linear work and for its benchmark."""
