"""Services with an OpenAPI document as sources of tools.

A document is read (`document_reader`), turned into definitions in a process of its own (`worker`), and each
operation is called from the plan that its definition carries (`operation_plan`, `requests`, `exchange`).
Nothing is imported here: the worker process must start quickly.
"""
