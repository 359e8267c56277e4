#!/usr/bin/env python3
"""Makes the sample data that the example workspaces read. Python's standard library is all it needs.

    python3 samples/generate.py             write the files that git holds
    python3 samples/generate.py --check     exit 1 if the files here are not what would be written
    python3 samples/generate.py --touch     set file times from the days in the paths (git keeps none)
    python3 samples/generate.py --arrive 3  let three more days of registrations arrive (git ignores them)

The same --seed gives the same bytes on every machine: of the random generator only random() is used,
whose numbers Python promises to keep.

demo/apps_raw/event_registration/year=YYYY/month=MM/day=DD/  JSON lines, one registration a line
    2022, 2023, 2024   the 4th and the 19th of each month: the history to be backfilled
    2025               each day of January: the live year; February arrives with --arrive
shop/orders/YYYY-MM-DD.json       JSON lines, one order a line; some are delivered twice
shop/corrections/YYYY-MM-DD.json  one day's orders again, after a bug in the shop was mended
shop/customers.csv                who orders
shop/legacy/orders.csv            orders of the old shop: other names, amounts in euros
crm/changes/YYYY-MM-DD.json       JSON lines: changes of customers, an operation and a time each
crm/snapshot/2025-01-01.json      all customers as they were at that moment
crm/legacy/customers_scd2.csv     the history that the old warehouse kept: a row a version, valid_from to valid_to
crm/feed/YYYY-MM-DD.json          the changes that came after the old warehouse was switched off

What is odd in them, on purpose:
    2022-08-19  an empty file
    2023-04-04  a line cut off in the middle (a writer that crashed)
    2023-11-19  names that are not ASCII, one of them written with \\u escapes
    2024-03-04  a key in another case, `Plan`: it is no column, so its value is rescued
    2024-07     `user` gets a member `address`, which gets a member `postcode` in 2025
    2025-01-10  a hidden file, `_SUCCESS`, which is not data
    2025-01-14  a registration of 2023 that was written late: `year(timestamp) >= '2025'` keeps it out
    2025-01-24  a new field, `vip`
    2025-02-02  `amount_cents` is text, where the table has BIGINT by then: the value is rescued
    2025-02-03  a new field, `campaign`, an object
    crm/changes   c03 is changed after the snapshot's moment, c04 before it and is not in it, c05 after it and is not
                  in it, c06 is deleted; the last file brings a change of c02 from before the snapshot
    crm/legacy    c14's last row is closed and nothing follows it: deleted, with no event that says so
    crm/feed      c12's first change is older than its last legacy row (stale), c13's has its very time (a tie)
"""
import argparse
import csv
import datetime
import io
import json
import os
import pathlib
import random
import sys

SEED = 2025
EVENTS = "demo/apps_raw/event_registration"
HISTORY_YEARS = (2022, 2023, 2024)
HISTORY_DAYS = (4, 19)
ARRIVING_FROM = datetime.date(2025, 2, 1)
ARRIVING_DAYS = 28
SHOP_DAYS = [datetime.date(2025, 3, day) for day in range(1, 9)]
CORRECTED_DAY = datetime.date(2025, 3, 4)

FIRST_NAMES = "Ada Björn Chiara Dmitri Elif Farid Grete Hugo Inés Jonas Keiko Liam Mara Noor Olga Pedro".split()
LAST_NAMES = "Abbott Berg Costa Díaz Evans Fischer García Hansen Ito Jensen Kowalski López Meyer Novák Okafor".split()
CITIES = {"AT": "Graz", "CZ": "Brno", "DE": "Bremen", "ES": "Sevilla", "FR": "Lyon", "IT": "Torino", "JP": "Kobe",
          "NL": "Utrecht", "NO": "Bergen", "PL": "Łódź", "PT": "Porto"}
PLANS = {"free": 0, "basic": 900, "pro": 1900, "enterprise": 24900}
TAGS = "beta newsletter nonprofit partner referral student trial".split()
SITES = "search.example.com news.example.org blog.example.net".split()
PLAN_NAMES = sorted(PLANS)
PRODUCTS = {"KB-61": 8900, "MS-02": 3450, "HD-17": 12900, "CB-05": 790, "ST-33": 4200}


class Dice:
    """Choices that depend on the seed and a label only, so that a file does not depend on the others."""

    def __init__(self, seed, label):
        self.random = random.Random(f"{seed}:{label}")

    def below(self, n):
        return int(self.random.random() * n)

    def one_of(self, things):
        things = list(things)
        return things[self.below(len(things))]

    def some_of(self, things, most):
        rest = list(things)
        return [rest.pop(self.below(len(rest))) for _ in range(self.below(most + 1))]

    def time(self, day):
        return datetime.datetime.combine(day, datetime.time()) + datetime.timedelta(seconds=self.below(86_400))


def json_lines(records):
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def csv_rows(header, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


# Customers: few and written by hand, so that every outcome can be told in advance.


def crm_change(operation, time, customer, name=None, city=None, plan=None):
    return {"operation": operation, "change_timestamp": f"{time}Z", "customer_id": customer,
            "name": name, "city": city, "plan": plan}


CRM_CHANGES = {
    "2024-12-20": [
        crm_change("INSERT", "2024-12-20T09:00:00", "c01", "Ada Abbott", "Graz", "basic"),
        crm_change("INSERT", "2024-12-20T09:05:00", "c02", "Björn Berg", "Brno", "pro"),
        crm_change("INSERT", "2024-12-20T09:10:00", "c04", "Dmitri Díaz", "Lyon", "free"),
    ],
    "2025-01-02": [
        crm_change("UPDATE", "2025-01-02T08:00:00", "c03", "Chiara Costa", "Torino", "enterprise"),
        crm_change("INSERT", "2025-01-02T08:30:00", "c05", "Elif Evans", "Porto", "free"),
        crm_change("DELETE", "2025-01-02T10:00:00", "c06"),
    ],
    "2025-01-03": [
        crm_change("UPDATE", "2025-01-03T12:00:00", "c01", "Ada Abbott", "Graz", "pro"),
        # Late: it happened before the snapshot was taken.
        crm_change("UPDATE", "2024-12-28T07:00:00", "c02", "Björn Berg", "Kobe", "free"),
    ],
}
CRM_SNAPSHOT = [
    {"customer_id": "c01", "name": "Ada Abbott", "city": "Graz", "plan": "basic"},
    {"customer_id": "c02", "name": "Björn Berg", "city": "Bremen", "plan": "pro"},
    {"customer_id": "c03", "name": "Chiara Costa", "city": "Torino", "plan": "basic"},
    {"customer_id": "c06", "name": "Farid Fischer", "city": "Bergen", "plan": "free"},
    {"customer_id": "c07", "name": "Grete García", "city": "Łódź", "plan": "basic"},
]
CRM_LEGACY = [
    # customer, name, city, plan, valid_from, valid_to
    ("c11", "Hugo Hansen", "Sevilla", "free", "2023-02-01T00:00:00Z", "2024-03-10T08:00:00Z"),
    ("c11", "Hugo Hansen", "Utrecht", "basic", "2024-03-10T08:00:00Z", ""),
    ("c12", "Inés Ito", "Kobe", "pro", "2023-05-05T10:00:00Z", "2025-02-20T16:00:00Z"),
    ("c12", "Inés Ito", "Bergen", "pro", "2025-02-20T16:00:00Z", ""),
    ("c13", "Jonas Jensen", "Brno", "free", "2024-07-01T00:00:00Z", ""),
    ("c14", "Keiko Kowalski", "Graz", "basic", "2023-01-15T09:30:00Z", "2024-11-30T18:00:00Z"),
    ("c15", "Liam López", "Lyon", "enterprise", "2024-09-09T09:09:09Z", ""),
]
CRM_FEED = {
    "2025-03-01": [
        crm_change("UPDATE", "2025-03-01T07:00:00", "c11", "Hugo Hansen", "Utrecht", "pro"),
        # Stale: the old warehouse has a later row of this customer.
        crm_change("UPDATE", "2025-02-18T11:00:00", "c12", "Inés Ito", "Kobe", "enterprise"),
        # A tie: the very time of its last legacy row.
        crm_change("UPDATE", "2024-07-01T00:00:00", "c13", "Jonas Jensen", "Torino", "free"),
    ],
    "2025-03-02": [
        crm_change("DELETE", "2025-03-02T09:00:00", "c15"),
        crm_change("INSERT", "2025-03-02T09:30:00", "c16", "Mara Meyer", "Porto", "free"),
        crm_change("UPDATE", "2025-03-02T10:00:00", "c11", "Hugo Hansen", "Sevilla", "pro"),
    ],
}


def crm_files():
    header = ("customer_id", "name", "city", "plan", "valid_from", "valid_to", "is_current")
    legacy = [(*row, "true" if row[-1] == "" else "false") for row in CRM_LEGACY]
    files = {f"crm/changes/{day}.json": json_lines(changes) for day, changes in CRM_CHANGES.items()}
    files |= {f"crm/feed/{day}.json": json_lines(changes) for day, changes in CRM_FEED.items()}
    files["crm/snapshot/2025-01-01.json"] = json_lines(CRM_SNAPSHOT)
    files["crm/legacy/customers_scd2.csv"] = csv_rows(header, legacy)
    return files


# Registrations


def registration(dice, day, number, time):
    first, last, country = dice.one_of(FIRST_NAMES), dice.one_of(LAST_NAMES), dice.one_of(CITIES)
    user = {"name": f"{first} {last}", "email": f"user{dice.below(9000) + 1000}@example.com", "country": country}
    if day >= datetime.date(2024, 7, 1):
        user["address"] = {"city": CITIES[country]}
    if day.year >= 2025:
        user["address"]["postcode"] = f"{dice.below(90_000) + 10_000}"
    plan = dice.one_of(PLANS)
    event = {
        "id": f"r{day:%Y%m%d}-{number:03}",
        "timestamp": time.isoformat(),
        "user": user,
        "plan": plan,
        "amount_cents": PLANS[plan] * (1 + dice.below(3)),
        "tags": dice.some_of(TAGS, 3),
        "referrer": dice.one_of([None, f"https://{dice.one_of(SITES)}/join?c={dice.below(900) + 100}"]),
    }
    if day >= datetime.date(2025, 1, 24):
        event["vip"] = dice.below(5) == 0
    if day >= datetime.date(2025, 2, 3):
        event["campaign"] = {"name": dice.one_of(["spring", "friends"]), "discount_percent": 5 * dice.below(4)}
    return event


def registrations(seed, day):
    """The registrations of one day, by time."""
    dice = Dice(seed, f"registrations {day}")
    times = sorted(dice.time(day) for _ in range(5 + dice.below(4)))
    return [registration(dice, day, number, time) for number, time in enumerate(times, 1)]


def registration_file(seed, day):
    """The bytes of one day's file, oddities included."""
    events = registrations(seed, day)
    match day.isoformat():
        case "2022-08-19":
            return b""
        case "2023-04-04":
            lines = json_lines(events).splitlines(keepends=True)
            return b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2] + b"\n"
        case "2023-11-19":
            events[0]["user"]["name"] = "Þórunn Łukasiewicz-Ó Dálaigh"
            events[1]["user"]["name"] = "李小龍 👩‍🚀"
            escaped = json.dumps(events[1], ensure_ascii=True).encode() + b"\n"
            return json_lines(events[:1]) + escaped + json_lines(events[2:])
        case "2024-03-04":
            events[1] = {"Plan" if key == "plan" else key: value for key, value in events[1].items()}
        case "2025-01-14":
            late = registration(Dice(seed, "late"), day, len(events) + 1, datetime.datetime(2023, 6, 30, 23, 59, 59))
            events.append(late)
        case "2025-02-02":
            events[0]["amount_cents"] = "19,00 EUR"
    return json_lines(events)


def registration_path(day):
    folder = f"{EVENTS}/year={day.year}/month={day.month:02}/day={day.day:02}"
    return f"{folder}/registrations-{day:%Y%m%d}.json"


def registration_days():
    for year in HISTORY_YEARS:
        yield from (datetime.date(year, month, day) for month in range(1, 13) for day in HISTORY_DAYS)
    yield from (datetime.date(2025, 1, day) for day in range(1, 32))


def arriving_days():
    return [ARRIVING_FROM + datetime.timedelta(days=n) for n in range(ARRIVING_DAYS)]


# The shop


def customers():
    """Customer 7 is unknown to the shop's books, though he orders: an outer join keeps his orders."""
    countries = sorted(CITIES)
    for number in range(1, 13):
        if number != 7:
            first, last = FIRST_NAMES[number], LAST_NAMES[-number]
            yield number, f"{first} {last}", countries[number % len(countries)], PLAN_NAMES[number % len(PLAN_NAMES)]


def orders(seed, day):
    dice = Dice(seed, f"orders {day}")
    times = sorted(dice.time(day) for _ in range(8 + dice.below(5)))
    made = []
    for number, time in enumerate(times, 1):
        items = [{"sku": sku, "quantity": 1 + dice.below(3), "unit_price_cents": PRODUCTS[sku]}
                 for sku in [dice.one_of(PRODUCTS), *dice.some_of(PRODUCTS, 2)]]
        made.append({
            "order_id": f"o{day:%m%d}-{number:02}",
            "ordered_at": time.isoformat() + "Z",
            "customer_id": 1 + dice.below(12),
            "status": dice.one_of(["paid", "paid", "paid", "shipped", "canceled", "TEST"]),
            "amount_cents": sum(item["quantity"] * item["unit_price_cents"] for item in items),
            "items": items,
        })
    return made


def order_file(seed, day):
    made = orders(seed, day)
    if day == CORRECTED_DAY:
        # The bug: the shop wrote euros where cents belong.
        for order in made:
            order["amount_cents"] //= 100
    elif day.day % 3 == 0:
        made.append(made[0])
    return json_lines(made)


def legacy_orders(seed):
    dice = Dice(seed, "legacy")
    for number in range(1, 41):
        day = datetime.date(2024, 1 + dice.below(12), 1 + dice.below(28))
        cents = dice.one_of(PRODUCTS.values()) * (1 + dice.below(3))
        yield number, f"{day:%d.%m.%Y}", 1 + dice.below(12), f"{cents / 100:.2f}", dice.one_of("PPPC")


# Files


def committed_files(seed):
    """Path below samples/ → bytes, of everything that git holds."""
    files = {registration_path(day): registration_file(seed, day) for day in registration_days()}
    files[f"{EVENTS}/year=2025/month=01/day=10/_SUCCESS"] = b""
    for day in SHOP_DAYS:
        files[f"shop/orders/{day}.json"] = order_file(seed, day)
    files[f"shop/corrections/{CORRECTED_DAY}.json"] = json_lines(orders(seed, CORRECTED_DAY))
    files["shop/customers.csv"] = csv_rows(["customer_id", "name", "country", "plan"], customers())
    files["shop/legacy/orders.csv"] = csv_rows(["nr", "datum", "kunde", "betrag", "st"], legacy_orders(seed))
    return files | crm_files()


def data_files(out):
    """Path below `out` of each file that is data, arrivals left out."""
    arrivals = {registration_path(day) for day in arriving_days()}
    for root in ("demo", "shop", "crm"):
        for path in sorted((out / root).rglob("*")):
            name = path.relative_to(out).as_posix()
            if path.is_file() and name not in arrivals:
                yield name


def write(out, name, content):
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def check(out, files):
    problems = [f"not made by generate.py: {name}" for name in data_files(out) if name not in files]
    for name, content in files.items():
        path = out / name
        if not path.is_file():
            problems.append(f"missing: {name}")
        elif path.read_bytes() != content:
            problems.append(f"differs: {name}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes, {len(problems)} problems")
    return 1 if problems else 0


def day_of(name):
    """The day in a path, or None."""
    parts = dict(part.split("=") for part in name.split("/") if "=" in part)
    try:
        if parts:
            return datetime.date(int(parts["year"]), int(parts["month"]), int(parts["day"]))
        return datetime.date.fromisoformat(pathlib.PurePosixPath(name).stem)
    except (KeyError, ValueError):
        return None


def touch(out):
    """Sets the time of each file with a day in its path to that day's noon, UTC."""
    noon, touched = datetime.time(12, tzinfo=datetime.timezone.utc), 0
    names = [path.relative_to(out).as_posix() for root in ("demo", "shop", "crm") for path in (out / root).rglob("*")]
    for name in names:
        if (day := day_of(name)) and (out / name).is_file():
            time = datetime.datetime.combine(day, noon).timestamp()
            os.utime(out / name, (time, time))
            touched += 1
    print(f"{touched} files touched")


def arrive(out, seed, days):
    """Writes the next `days` days that have not arrived yet."""
    waiting = [day for day in arriving_days() if not (out / registration_path(day)).exists()]
    for day in waiting[:days]:
        write(out, registration_path(day), registration_file(seed, day))
        print(f"arrived: {registration_path(day)}")
    if not waiting:
        print("all of February has arrived; remove year=2025/month=02 to begin anew")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="instead of samples/")
    action = arguments.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true")
    action.add_argument("--touch", action="store_true")
    action.add_argument("--arrive", type=int, metavar="DAYS")
    given = arguments.parse_args()
    if given.touch:
        touch(given.out)
    elif given.arrive is not None:
        arrive(given.out, given.seed, given.arrive)
    else:
        files = committed_files(given.seed)
        if given.check:
            return check(given.out, files)
        for name, content in files.items():
            write(given.out, name, content)
        print(f"{len(files)} files, {sum(map(len, files.values()))} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
