-- pgvector in this database: the version that is installed or NULL, whether the server has it, and
-- whether this user may install it (a superuser, or whoever may create in the database where the
-- extension is trusted).
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector'),
       coalesce((SELECT rolsuper FROM pg_roles WHERE rolname = current_user), false)
       OR (has_database_privilege(current_database(), 'CREATE')
           AND EXISTS (SELECT 1 FROM pg_available_extension_versions
                       WHERE name = 'vector' AND (trusted OR NOT superuser)))
