-- needs 1
--
-- chunks_lexemes: new entries go to a list of at most 1 MB, some five documents, and from there into
-- the index all at once, where a word that many of them hold is looked for once. A search
-- reads the list, which costs it at most 0.4 ms for each term.
ALTER INDEX penstock.chunks_lexemes SET (fastupdate = on, gin_pending_list_limit = 1024);
