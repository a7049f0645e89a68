"""Code that a model wrote, run where it can reach nothing but tools. The only home of pydantic_monty."""
