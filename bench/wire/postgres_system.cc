// PostgreSQL as a queue, through libpq: a request is a COPY in a transaction of its own (synced
// before it is answered); DELETE ... SKIP LOCKED ... RETURNING receives and acknowledges in one.
//
// A connection does one thing at a time, so there are several for requests under way. With them
// nothing is in order: this system has no keys.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <postgresql/libpq-fe.h>

#include "bench/wire/load.h"
#include "bench/wire/system.h"

namespace ordo::bench {
namespace {

class Connection {
 public:
  explicit Connection(const WirePlan& plan)
      : connection_(PQconnectdb(
            ("host=127.0.0.1 port=" + std::to_string(plan.port) + " user=postgres dbname=postgres")
                .c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) fail();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { PQfinish(connection_); }

  void run(const char* statement) {
    PGresult* const result = PQexec(connection_, statement);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) fail();
    PQclear(result);
  }

  void prepare(const char* name, const char* statement) {
    PGresult* const result = PQprepare(connection_, name, statement, 0, nullptr);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) fail();
    PQclear(result);
  }

  PGresult* ask(const char* name, const std::string& argument) {
    const char* const values[] = {argument.c_str()};
    PGresult* const result = PQexecPrepared(connection_, name, 1, values, nullptr, nullptr, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) fail();
    return result;
  }

  void copy(const char* statement, const std::string& bytes) {
    PGresult* result = PQexec(connection_, statement);
    if (PQresultStatus(result) != PGRES_COPY_IN) fail();
    PQclear(result);
    if (PQputCopyData(connection_, bytes.data(), static_cast<int>(bytes.size())) != 1 ||
        PQputCopyEnd(connection_, nullptr) != 1)
      fail();
    while ((result = PQgetResult(connection_)) != nullptr) {
      if (PQresultStatus(result) != PGRES_COMMAND_OK) fail();
      PQclear(result);
    }
  }

 private:
  [[noreturn]] void fail() const { give_up(PQerrorMessage(connection_)); }

  PGconn* connection_;
};

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// PostgreSQL's binary COPY of rows with one column.
std::string rows_of(const std::vector<std::string>& bodies) {
  std::string bytes("PGCOPY\n\377\r\n\0", 11);
  put(bytes, std::uint64_t{0});  // Flags, and the size of what follows them.
  for (const std::string& body : bodies) {
    put(bytes, htons(1));
    put(bytes, htonl(static_cast<std::uint32_t>(body.size())));
    bytes += body;
  }
  put(bytes, std::uint16_t{0xffff});
  return bytes;
}

// A thread for each connection; they take the requests in turn.
class PostgresPublisher final : public Publisher {
 public:
  explicit PostgresPublisher(const WirePlan& plan) {
    const std::size_t count = plan.window == 1 ? 1 : plan.batch <= 10 ? 8 : 2;
    for (std::size_t i = 0; i < count; ++i)
      threads_.emplace_back([this, &plan] { work(plan); });
  }
  ~PostgresPublisher() override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      has_work_.notify_all();
    }
    for (std::thread& thread : threads_)
      thread.join();
  }

  void send(std::uint64_t key, const std::vector<std::string>& bodies) override {
    if (key != kNoKey) give_up("no keys in this system");
    std::string rows = rows_of(bodies);
    const std::lock_guard lock(mutex_);
    waiting_.push_back({requests_++, std::move(rows)});
    has_work_.notify_one();
  }

  void receive(std::uint64_t wait_ns, std::vector<std::uint64_t>& answered) override {
    std::unique_lock lock(mutex_);
    has_answer_.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                         [this] { return !answered_.empty(); });
    answered.insert(answered.end(), answered_.begin(), answered_.end());
    answered_.clear();
  }

 private:
  struct Request {
    std::uint64_t number = 0;
    std::string rows{};
  };

  void work(const WirePlan& plan) {
    Connection connection(plan);
    std::unique_lock lock(mutex_);
    for (;;) {
      has_work_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Request request = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      connection.copy("copy wire(body) from stdin binary", request.rows);
      lock.lock();
      answered_.push_back(request.number);
      has_answer_.notify_one();
    }
  }

  std::mutex mutex_{};
  std::condition_variable has_work_{};
  std::condition_variable has_answer_{};
  std::deque<Request> waiting_{};
  std::vector<std::uint64_t> answered_{};
  std::uint64_t requests_ = 0;
  bool is_over_ = false;
  std::vector<std::thread> threads_{};
};

class PostgresConsumer final : public Consumer {
 public:
  explicit PostgresConsumer(const WirePlan& plan)
      : batch_(std::to_string(plan.batch)),
        connection_(plan) {
    connection_.prepare("take",
                        "delete from wire where id in (select id from wire order by id limit $1 "
                        "for update skip locked) returning body");
  }

  void receive(std::uint64_t wait_ns, const Sink& sink) override {
    PGresult* const result = connection_.ask("take", batch_);
    const int count = PQntuples(result);
    for (int row = 0; row < count; ++row)
      sink({PQgetvalue(result, row, 0), static_cast<std::size_t>(PQgetlength(result, row, 0))}, {});
    PQclear(result);
    if (count == 0) pause(wait_ns);
  }
  void acknowledge(std::vector<Receipt>& /*receipts*/) override {}
  void finish() override {}

 private:
  // Nobody tells when there is something new: it has to ask again.
  void pause(std::uint64_t wait_ns) {
    constexpr std::uint64_t kPauseNs = 500'000;
    std::unique_lock lock(mutex_);
    nobody_.wait_for(lock, std::chrono::nanoseconds(std::min(wait_ns, kPauseNs)));
  }

  const std::string batch_;
  Connection connection_;
  std::mutex mutex_{};
  std::condition_variable nobody_{};
};

class PostgresSystem final : public System {
 public:
  explicit PostgresSystem(const WirePlan& plan) : plan_(plan), connection_(plan) {
    connection_.run("set client_min_messages = error");
    clear();
    connection_.run(
        "create table wire(id bigserial primary key, body bytea not null) "
        "with (autovacuum_vacuum_scale_factor = 0.05)");
  }

  std::unique_ptr<Publisher> publisher() override {
    return std::make_unique<PostgresPublisher>(plan_);
  }
  std::unique_ptr<Consumer> consumer() override {
    if (plan_.mode == "drain") connection_.run("analyze wire");
    return std::make_unique<PostgresConsumer>(plan_);
  }
  void clear() override { connection_.run("drop table if exists wire"); }

 private:
  const WirePlan plan_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<System> make_system(const WirePlan& plan) {
  return std::make_unique<PostgresSystem>(plan);
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  return ordo::bench::run_driver(argc, argv);
}
