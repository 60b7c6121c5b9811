"""What columns of published files may hold: words of refusals, which decide no output."""

DECIDES_NOTHING = True
SECONDS = "seconds between 1970 and 2100 (are these milliseconds?)"
DAY = "a day between 1970 and 2100 (yyyy-mm-dd)"
MOMENT = "a date such as 2018-10-04 11:22:33"
MONTH_AND_DAY = "a month and day (mmdd)"
DAY_OF_MONTH = "a day of its month"
KEY = "an id (22 letters, digits, - or _)"
KEYS = "None or ids between commas"
COUNT = "a count, with commas between thousands or without"
