CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL, born_on TEXT NOT NULL);
CREATE TABLE loans (
    id INTEGER PRIMARY KEY,
    member_id INTEGER NOT NULL REFERENCES members (id),
    title TEXT NOT NULL,
    lent_on TEXT NOT NULL,
    returned_on TEXT
);
CREATE TABLE renewals (
    loan_id INTEGER NOT NULL REFERENCES loans (id),
    renewed_on TEXT NOT NULL
);
