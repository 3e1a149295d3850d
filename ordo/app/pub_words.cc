// ordo pub: one message, or one for each line of standard input.
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "ordo/app/broker_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/json_field.h"
#include "ordo/app/json_text.h"
#include "ordo/app/line_reader.h"
#include "ordo/app/progress.h"
#include "ordo/app/publishing.h"
#include "ordo/app/resource_text.h"
#include "ordo/core/utf8.h"

namespace ordo::app {
namespace {

using pubsub_client::OutgoingMessage;

constexpr std::size_t kKeyBytesMax = 1'024;
constexpr std::size_t kLineBytesMax = std::size_t{10} << 20;  // A request has no more.

struct Typed {
  std::shared_ptr<BrokerWords> broker = std::make_shared<BrokerWords>();
  std::string topic, key_field;
  std::optional<std::string> data = {}, key = {};
  std::vector<std::string> attributes = {};
  bool ids = false;
};

CommandOption::Take into_given(std::optional<std::string>& to) {
  return [&to](const std::string& value) { to = value; };
}

Status check_key(const std::string& key) {
  if (key.empty()) return Error{ErrorCode::invalid_argument, "Ordering key cannot be empty"};
  if (key.size() > kKeyBytesMax) {
    return Error{ErrorCode::invalid_argument, "Ordering key exceeds maximum length of " +
                                                  std::to_string(kKeyBytesMax) + " bytes"};
  }
  if (!is_utf8(key)) return Error{ErrorCode::invalid_argument, "Ordering key is not UTF-8"};
  return {};
}

Error at_line(std::uint64_t number, const std::string& what) {
  return {ErrorCode::invalid_argument, "line " + std::to_string(number) + ": " + what};
}

// The lines of standard input, as messages.
class LinePublisher {
 public:
  LinePublisher(const Typed& typed, const pubsub_client::Attributes& attributes,
                const std::string& topic, BrokerSeat& seat)
      : typed_(typed),
        attributes_(attributes),
        json_(seat.json),
        reader_(STDIN_FILENO, {.separator = '\n', .line_bytes_max = kLineBytesMax}),
        progress_(true, STDERR_FILENO, system_clock()),
        began_(system_clock().now()),
        publishing_(seat.client, topic,
                    [this](const auto& lines, const auto& ids) { stored(lines, ids); }) {
    struct stat info {};
    if (::fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
      input_bytes_ = static_cast<std::uint64_t>(info.st_size);
  }

  Status run() {
    Status done = read_all();
    if (done) done = publishing_.finish();
    progress_.hide();
    if (Status printed = print_ids(); done && !printed) done = printed;
    const std::string count = std::to_string(publishing_.published());
    if (!done) {
      return Error{done.error().code,
                   done.error().message + " (" + count + " messages before it were published)"};
    }
    if (json_ || typed_.ids) return {};
    return print_text(count + (publishing_.published() == 1 ? " message" : " messages") +
                      " published\n");
  }

 private:
  Status read_all() {
    for (;;) {
      std::string_view line;
      switch (reader_.next(line)) {
        case LineReader::Next::line:
          if (Status taken = take(line); !taken) return taken;
          break;
        case LineReader::Next::cut:
          return at_line(number_ + 1, "longer than a message may be");
        case LineReader::Next::more:
          if (Status waited = wait_for_input(); !waited) return waited;
          break;
        case LineReader::Next::end:
          return {};
      }
    }
  }

  // While nothing more is there to be read, what was read goes out.
  Status wait_for_input() {
    for (;;) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, 0) != 0) break;
      publishing_.send_waiting();
      if (!publishing_.is_under_way()) break;
      if (Status settled = publishing_.settle_one(); !settled) return settled;
    }
    const int error = reader_.fill();
    if (error == 0 || error == EINTR) return {};
    return Error{ErrorCode::data_loss,
                 std::string("cannot read standard input: ") + ::strerrordesc_np(error)};
  }

  Status take(std::string_view line) {
    ++number_;
    OutgoingMessage message{std::string(line), typed_.key.value_or(""), attributes_};
    if (!typed_.key_field.empty()) {
      Result<std::optional<std::string>> key = json_field(line, typed_.key_field);
      if (!key) return at_line(number_, key.error().message);
      if (!*key) return at_line(number_, "has no field '" + typed_.key_field + "'");
      if (Status good = check_key(**key); !good) return at_line(number_, good.error().message);
      message.key = std::move(**key);
    }
    if (line.empty() && attributes_.empty())
      return at_line(number_, "is empty, and a message has data or an attribute");
    return publishing_.add(number_, std::move(message));
  }

  void stored(const std::vector<std::uint64_t>& lines, const std::vector<std::string>& ids) {
    if (json_ || typed_.ids) {
      for (std::size_t i = 0; i < lines.size() && i < ids.size(); ++i) {
        if (!json_) {
          output_.append(ids[i]).append("\n");
          continue;
        }
        std::string object = "{";
        append_number_field(object, "line", static_cast<long long>(lines[i]));
        append_text_field(object, "id", ids[i]);
        output_.append(object).append("}\n");
      }
      constexpr std::size_t kOutputBytes = 65'536;
      if (output_.size() > kOutputBytes) output_error_ = print_ids();
    }
    std::optional<double> share;
    if (input_bytes_ > 0)
      share = static_cast<double>(reader_.bytes_read()) / static_cast<double>(input_bytes_);
    progress_.draw({publishing_.published(), 0, system_clock().now() - began_, share});
  }
  Status print_ids() {
    if (!output_error_) return output_error_;
    return print_text(std::exchange(output_, {}));
  }

  const Typed& typed_;
  const pubsub_client::Attributes& attributes_;
  const bool json_;
  LineReader reader_;
  Progress progress_;
  const TimePoint began_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t number_ = 0;
  std::string output_;
  Status output_error_;
  Publishing publishing_;
};

Status publish(BrokerSeat& seat, const Typed& typed) {
  const Result<std::string> topic =
      whole_name(seat.place.project, broker::Collection::topics, typed.topic);
  if (!topic) return topic.error();
  const Result<Labels> attributes = parse_labels("--attr", typed.attributes);
  if (!attributes) return attributes.error();
  if (!typed.data) return LinePublisher(typed, *attributes, *topic, seat).run();
  const auto ids =
      seat.client.publish(*topic, {{*typed.data, typed.key.value_or(""), *attributes}});
  if (!ids) return ids.error();
  if (!seat.json) return print_text(ids->at(0) + "\n");
  std::string object = "{";
  append_text_field(object, "id", ids->at(0));
  return print_text(object + "}\n");
}

Status check(const Typed& typed) {
  if (typed.key && !typed.key_field.empty())
    return Error{ErrorCode::invalid_argument, "--key and --key-field exclude each other"};
  if (typed.data && !typed.key_field.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "--key-field is for lines of standard input; leave DATA out"};
  }
  return typed.key ? check_key(*typed.key) : Status();
}

}  // namespace

Command pub_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "pub", .help = "Publish a message, or one for each line of input"};
  command.usage = "ordo pub [OPTIONS] TOPIC [DATA]";
  command.footer = kPubExamples;
  command.options = {
      {.names = "TOPIC",
       .help = "Its name; without projects/ of this project",
       .take = into(typed->topic),
       .is_required = true},
      {.names = "DATA",
       .help = "The message; left out: one for each line of standard input",
       .take = into_given(typed->data)},
      {.names = "-k,--key",
       .type = "KEY",
       .help = "Its ordering key",
       .take = into_given(typed->key)},
      {.names = "--key-field",
       .type = "NAME",
       .help = "Lines are JSON objects, and this field of each is its ordering key",
       .take = into(typed->key_field)},
      {.names = "-a,--attr",
       .type = "NAME=VALUE",
       .help = "An attribute; may be given more than once",
       .take = into(typed->attributes),
       .is_repeatable = true},
      {.names = "--ids",
       .help = "Print the ids of the messages from standard input",
       .take = into(typed->ids)},
  };
  add_broker_options(command, typed->broker);
  command.check = [typed] { return check(*typed); };
  command.run = [typed] {
    return with_broker(*typed->broker, [&](BrokerSeat& seat) { return publish(seat, *typed); });
  };
  return command;
}

}  // namespace ordo::app
