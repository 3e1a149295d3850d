#include "ordo/app/message_hands.h"

#include <array>
#include <unistd.h>
#include <utility>

#include <sys/eventfd.h>

#include "ordo/app/message_text.h"
#include "ordo/core/check.h"

namespace ordo::app {

MessageHands::MessageHands(Options options, int wake_fd, const sigset_t& children_mask)
    : options_(std::move(options)),
      wake_fd_(wake_fd),
      spawner_(children_mask),
      work_({.items_max = options_.jobs}),
      workers_("ordo-hand", [this](std::size_t, const std::stop_token&) { work(); }) {
  workers_.grow(options_.jobs);
}

MessageHands::~MessageHands() {
  stop_.force();
  work_.close();
  workers_.stop();
}

void MessageHands::start(LaneHandle lane, const pubsub_client::IncomingMessage& message) {
  ORDO_CHECK(has_room());
  ++running_;
  ORDO_CHECK(work_.push(Work{lane, &message}) == ChannelPush::admitted);
}

std::vector<MessageHands::Done> MessageHands::take_done() {
  const std::lock_guard lock(mutex_);
  running_ -= done_.size();
  return std::exchange(done_, {});
}

void MessageHands::work() {
  while (const std::optional<Work> next = work_.pop()) {
    Done done{next->lane, run(*next->message)};
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
    ::eventfd_write(wake_fd_, 1);
  }
}

ChildRun MessageHands::run(const pubsub_client::IncomingMessage& message) const {
  std::vector<std::string> more = message_variables(message, options_.subscription);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  for (std::string& variable : more)
    environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string shell = "sh";
  std::string flag = "-c";
  std::string script = options_.script;
  const std::array<char*, 4> argv = {shell.data(), flag.data(), script.data(), nullptr};
  const ChildCommand command{.file = "/bin/sh",
                             .argv = argv.data(),
                             .input = message.data,
                             .environment = environment.data()};
  return run_child(spawner_, command, {.timeout = options_.timeout}, stop_, system_clock());
}

}  // namespace ordo::app
