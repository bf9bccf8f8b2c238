INSERT INTO members VALUES (1, 'Pia', '1980-02-29'), (2, 'Rob', '2012-10-01');
INSERT INTO loans VALUES
    (1, 1, 'Bees', '2024-01-10', NULL),
    (2, 1, 'Ants', '2024-02-01', '2024-02-20'),
    (3, 2, 'Owls', '2024-01-01', NULL);
INSERT INTO renewals VALUES (3, '2024-01-20');
