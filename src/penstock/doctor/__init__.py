"""`penstock doctor`: looks at each configured part, and says what to do. Changes nothing."""
