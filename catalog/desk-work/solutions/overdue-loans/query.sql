WITH late AS (
    SELECT
        l.member_id,
        CAST(
            julianday(:today) - julianday(
                COALESCE((SELECT MAX(r.renewed_on) FROM renewals AS r WHERE r.loan_id = l.id), l.lent_on)
            ) - 28 AS INTEGER
        ) AS days
    FROM loans AS l
    WHERE l.returned_on IS NULL
)
SELECT
    m.name,
    COUNT(*) AS books,
    MAX(late.days) AS days,
    SUM(CASE WHEN date(m.born_on, '+18 years') > :today THEN 0 ELSE MIN(500, 20 * late.days) END) AS fee_cents
FROM members AS m
JOIN late ON late.member_id = m.id
WHERE late.days > 0
GROUP BY m.id, m.name
ORDER BY fee_cents DESC, m.name;
