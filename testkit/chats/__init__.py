"""Parts of stored chats: pictures, long ones, and what earlier writers left."""
