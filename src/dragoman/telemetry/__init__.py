"""What can be seen from outside: logs, numbers, spans. Knows no connector, no call and no store."""
