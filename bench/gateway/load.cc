#include "bench/gateway/load.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <deque>
#include <memory>
#include <unistd.h>
#include <vector>

#include <sys/epoll.h>
#include <sys/prctl.h>

#include "bench/gateway/connection.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t cpu_ns_of(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (process == 0 || clock_getcpuclockid(process, &clock) != 0) return 0;
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Times and processor times at one moment.
struct Moment {
  explicit Moment(pid_t server)
      : wall(now_ns()),
        client(process_cpu_ns()),
        server_cpu(cpu_ns_of(server)) {}
  std::uint64_t wall;
  std::uint64_t client;
  std::uint64_t server_cpu;
};

class Load {
 public:
  explicit Load(const LoadPlan& plan)
      : plan_(plan),
        poll_(::epoll_create1(EPOLL_CLOEXEC)),
        start_(plan.server) {
    latencies_.reserve(1 << 22);
    ::prctl(PR_SET_TIMERSLACK, 1);  // Bursts go when they are due, not 50 us later.
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { ::close(poll_); }

  bool connect() {
    for (std::size_t i = 0; i < plan_.connections; ++i) {
      clients_.push_back(
          std::make_unique<Client>(plan_.dialect, plan_.first_connection + i, plan_.port));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      if (clients_.back()->connection.fd() < 0) return false;
      if (::epoll_ctl(poll_, EPOLL_CTL_ADD, clients_.back()->connection.fd(), &event) != 0)
        return false;
    }
    return true;
  }

  Measures run() {
    begin_ns_ = now_ns();
    warm_until_ns_ = begin_ns_ + plan_.warm_ns;
    end_ns_ = warm_until_ns_ + plan_.measured_ns;
    if (plan_.rate == 0) {
      for (const auto& client : clients_)
        ask_burst(*client, begin_ns_);
    }
    bool warm = false;
    std::uint64_t now = now_ns();
    for (; now < end_ns_ && !broken_; now = now_ns()) {
      if (!warm && now >= warm_until_ns_) {
        warm = true;
        latencies_.clear();
        start_ = Moment(plan_.server);
      }
      if (plan_.rate != 0) ask_what_is_due(now);
      turn(next_wake(now));
    }
    const Moment end(plan_.server);
    const std::size_t answered = latencies_.size();
    // What was due in time counts, however late it is answered: a server, or this loop, that stood
    // still at the end would else hide the worst of it.
    if (plan_.rate != 0) ask_what_is_due(end_ns_ - 1);
    stopping_ = true;
    const std::uint64_t last_ns = end_ns_ + plan_.patience_ns;
    while (outstanding() > 0 && !broken_ && now_ns() < last_ns)
      turn(last_ns);
    return judge(measure(end, answered));
  }

 private:
  struct Client {
    Client(std::string_view dialect, std::size_t number, std::uint16_t port)
        : connection(dialect, number, port) {}
    Connection connection;
    std::deque<std::uint64_t> kept_back{};  // When bursts were due that had to wait.
    bool watches_output = false;
  };

  std::uint64_t due_ns(std::uint64_t burst) const {
    const double seconds = static_cast<double>(burst * plan_.pipelining) / plan_.rate;
    return begin_ns_ + static_cast<std::uint64_t>(seconds * static_cast<double>(kSecond));
  }

  void ask_what_is_due(std::uint64_t now) {
    for (; due_ns(next_burst_) <= now; ++next_burst_) {
      Client& client = *clients_[next_burst_ % clients_.size()];
      client.kept_back.push_back(due_ns(next_burst_));
      ask_kept_back(client);
    }
  }

  void ask_kept_back(Client& client) {
    const std::size_t outstanding_max = kBurstsMax * plan_.pipelining;
    while (!client.kept_back.empty() &&
           client.connection.outstanding() + plan_.pipelining <= outstanding_max) {
      ask_burst(client, client.kept_back.front());
      client.kept_back.pop_front();
    }
  }

  void ask_burst(Client& client, std::uint64_t due) {
    client.connection.ask(plan_.pipelining, due);
    client.connection.send();
  }

  std::uint64_t next_wake(std::uint64_t now) const {
    std::uint64_t wake = now < warm_until_ns_ ? warm_until_ns_ : end_ns_;
    if (plan_.rate != 0) wake = std::min(wake, due_ns(next_burst_));
    return wake;
  }

  // Waits for sockets until `until_ns` and serves those that are ready, once.
  void turn(std::uint64_t until_ns) {
    const std::uint64_t now = now_ns();
    const std::uint64_t wait = until_ns > now ? until_ns - now : 0;
    const timespec timeout{static_cast<time_t>(wait / kSecond), static_cast<long>(wait % kSecond)};
    epoll_event events[128];
    const int count = ::epoll_pwait2(poll_, events, 128, &timeout, nullptr);
    for (int i = 0; i < count; ++i)
      serve(*clients_[events[i].data.u64], events[i].data.u64, events[i].events);
  }

  void serve(Client& client, std::uint64_t number, std::uint32_t ready) {
    Connection& connection = client.connection;
    if ((ready & EPOLLOUT) != 0) connection.send();
    if ((ready & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) connection.receive(latencies_);
    if (plan_.rate != 0) ask_kept_back(client);
    if (!stopping_ && plan_.rate == 0 && connection.outstanding() == 0) ask_burst(client, now_ns());
    if (connection.has_unsent() != client.watches_output) {
      client.watches_output = !client.watches_output;
      epoll_event event{};
      event.events = client.watches_output ? EPOLLIN | EPOLLOUT : EPOLLIN;
      event.data.u64 = number;
      ::epoll_ctl(poll_, EPOLL_CTL_MOD, connection.fd(), &event);
    }
    broken_ = broken_ || connection.broken();
  }

  // Asked and not answered, or due and not asked.
  std::size_t outstanding() const {
    std::size_t count = 0;
    for (const auto& client : clients_)
      count += client->connection.outstanding() + client->kept_back.size() * plan_.pipelining;
    return count;
  }

  // `answered` until `end`; latencies are those of the answers that came later, too.
  Measures measure(const Moment& end, std::size_t answered) {
    const auto wall = static_cast<double>(end.wall - start_.wall);
    Measures measures;
    measures.set("requests_per_s", static_cast<double>(answered) / wall * 1e9);
    measures.set("us_per_request", wall / 1e3 / static_cast<double>(answered + 1));
    measures.set("requests", static_cast<double>(answered));
    for (const auto& [name, share] :
         {std::pair("p50_us", 0.5), std::pair("p90_us", 0.9), std::pair("p99_us", 0.99),
          std::pair("p999_us", 0.999), std::pair("max_us", 1.0)})
      measures.set(name, percentile(latencies_, share) / 1000);
    measures.set("client_cores", static_cast<double>(end.client - start_.client) / wall);
    measures.set("server_cores", static_cast<double>(end.server_cpu - start_.server_cpu) / wall);
    return measures;
  }

  Measures judge(Measures measures) const {
    double disordered = 0;
    double bad = 0;
    std::string first;
    for (const auto& client : clients_) {
      const Connection::Errors& errors = client->connection.errors();
      disordered += static_cast<double>(errors.disordered);
      bad += static_cast<double>(errors.bad);
      if (first.empty()) first = errors.first;
    }
    const auto unanswered = static_cast<double>(outstanding());
    const double errors = disordered + bad + unanswered + (broken_ ? 1 : 0);
    if (errors > 0) {
      std::fprintf(stderr, "bench_gateway: %s: %.0f disordered, %.0f bad, %.0f unanswered%s; %s\n",
                   plan_.dialect.c_str(), disordered, bad, unanswered,
                   broken_ ? ", a connection was closed" : "", first.c_str());
    }
    measures.set("disordered", disordered);
    measures.set("bad", bad);
    measures.set("unanswered", unanswered);
    measures.set("errors", errors);
    return measures;
  }

  const LoadPlan& plan_;
  const int poll_;
  std::vector<std::unique_ptr<Client>> clients_{};
  std::vector<double> latencies_{};
  Moment start_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t warm_until_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::uint64_t next_burst_ = 0;
  bool stopping_ = false;
  bool broken_ = false;
};

}  // namespace

Measures run_load(const LoadPlan& plan) {
  Load load(plan);
  if (load.connect()) return load.run();
  std::fprintf(stderr, "bench_gateway: cannot connect to port %u\n", unsigned{plan.port});
  Measures failed;
  failed.set("errors", 1);
  return failed;
}

}  // namespace ordo::bench
