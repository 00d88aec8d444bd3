//! What becomes of a step's words about rows.
