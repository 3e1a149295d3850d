// The partition engine in a program of your own, without a network: instructions for accounts.
// Those of one account are done in the order they came in, by one thread at a time, so a partition
// keeps its accounts in a plain map without a lock. A transfer ends later, when its token is used.
#include <chrono>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ordo/engine.h>

namespace {

struct Instruction {
  std::string what;
  int amount;
};

// Somebody else's service: it takes its time, and says on a thread of its own when it is done.
class Bank {
 public:
  void transfer(int amount, ordo::TaskToken token) {
    calls_.emplace_back([amount, token = std::move(token)] {
      amount > 1'000 ? token.fail("the bank refuses " + std::to_string(amount)) : token.done();
    });
  }
  ~Bank() {
    for (std::thread& call : calls_)
      call.join();
  }

 private:
  std::vector<std::thread> calls_;
};

// One for each partition; whatever it has belongs to that partition.
class Accounts {
 public:
  void handle(const Instruction& task, const ordo::TaskTurn& turn, ordo::TaskToken token) {
    int& balance = balances_[turn.id];
    if (balance + task.amount < 0) throw std::runtime_error("only " + std::to_string(balance));
    if (task.what == "transfer") return bank_.transfer(-task.amount, std::move(token));
    token.done();
  }
  void finished(Instruction& task, const ordo::TaskTurn& turn) noexcept {
    balances_[turn.id] += task.amount;
    answers_[turn.id] += "  " + task.what + ": " + std::to_string(balances_[turn.id]) + "\n";
  }
  void failed(Instruction& task, const ordo::TaskTurn& turn, std::exception_ptr error) noexcept {
    try {
      std::rethrow_exception(std::move(error));
    } catch (const std::exception& e) {
      answers_[turn.id] += "  " + task.what + ": refused, " + e.what() + "\n";
    }
  }

  const std::map<ordo::CorrelationId, std::string>& answers() const { return answers_; }

 private:
  std::map<ordo::CorrelationId, int> balances_;
  std::map<ordo::CorrelationId, std::string> answers_;
  Bank bank_;
};

}  // namespace

int main() {
  ordo::PartitionEngine<Instruction, Accounts> engine(
      {.partitions = 2, .per_id = 5}, [](std::size_t) { return std::make_unique<Accounts>(); });

  int refused = 0;
  const auto submit = [&](ordo::CorrelationId account, std::string what, int amount) {
    const auto entry = engine.submit(account, {std::move(what), amount}).entry;
    refused += entry == ordo::Entry::admitted ? 0 : 1;
  };
  submit(17, "deposit", 500);
  submit(17, "transfer", -200);  // What follows waits for the bank, in this account only.
  submit(17, "withdraw", -400);
  submit(17, "withdraw", -300);
  submit(18, "deposit", 5'000);
  submit(18, "transfer", -2'000);
  submit(18, "withdraw", -1'000);
  for (int n = 0; n < 7; ++n)
    submit(19, "deposit", 1);  // Five of an account at a time, no more.
  engine.flush();              // Now they run.

  const auto drained = engine.drain(std::chrono::seconds(30));
  std::map<ordo::CorrelationId, std::string> answers;
  for (std::size_t partition = 0; partition < engine.partition_count(); ++partition)
    answers.insert(engine.handler(partition).answers().begin(),
                   engine.handler(partition).answers().end());
  for (const auto& [account, lines] : answers)
    std::cout << "account " << account << '\n' << lines;
  const ordo::PartitionStats stats = engine.stats().total();
  std::cout << stats.processed << " done, " << stats.failed << " failed, " << refused
            << " refused at the door, " << drained.undone.size() << " left undone\n";
}
