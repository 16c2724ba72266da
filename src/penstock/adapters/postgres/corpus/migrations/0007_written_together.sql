-- needs 1
--
-- chunks_lexemes: new entries go to a list of at most 1 MB, some five documents, and from there into
-- the index all at once, where a word that many of them hold is looked for once. A search
-- reads the list for each term, which costs it about 0.1 ms.
ALTER INDEX penstock.chunks_lexemes SET (fastupdate = on, gin_pending_list_limit = 1024);
