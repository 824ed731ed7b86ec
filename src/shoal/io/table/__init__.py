"""From content to a table: columns with their roles, domains, and the schema."""
