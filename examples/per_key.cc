// Order per key: the events of one account happen one after the other, in the order they came in;
// different accounts go side by side. The handler needs no lock for what belongs to the key.
#include <iostream>
#include <map>
#include <string>

#include <ordo/pool.h>

namespace {

struct Event {
  std::string account;
  int amount;
};

struct Account {
  int balance = 0;
  std::string history;
};

}  // namespace

int main() {
  // The map itself does not change while the pool runs; each account has one handler at a time.
  std::map<std::string, Account> accounts = {{"anna", {}}, {"ben", {}}, {"cleo", {}}};

  const auto book = [&accounts](const Event& event) {
    Account& account = accounts.at(event.account);
    account.balance += event.amount;
    account.history += ' ' + std::to_string(event.amount);
    return event.amount;
  };
  int turnover = 0;  // emit calls never overlap.
  ordo::Pool<Event, int> pool(
      book, [&turnover](int amount) { turnover += amount; },
      {.workers = 4, .partition_key = [](const Event& event) { return event.account; }});

  for (int step = 1; step <= 5; ++step) {
    pool.push({"anna", step});
    pool.push({"ben", 10 * step});
    pool.push({"cleo", 100 * step});
  }
  pool.close();
  pool.wait();

  for (const auto& [name, account] : accounts)
    std::cout << name << ':' << account.history << " = " << account.balance << '\n';
  std::cout << "turnover: " << turnover << '\n';
}
