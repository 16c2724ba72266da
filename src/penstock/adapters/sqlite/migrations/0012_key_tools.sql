-- The tools that a key may call, with blanks between them; null: it is not confined to tools.
ALTER TABLE api_keys ADD COLUMN tools TEXT;
