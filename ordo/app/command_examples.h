// The examples and exit statuses at the end of each command's help.
#pragma once

namespace ordo::app {

inline constexpr const char* kMapExamples = R"(
COMMAND runs once for each line of standard input, without a shell. In its arguments {} is the
line, {#} the number of the job and {%} its slot (1 to the number of workers); without any of
them the line becomes the last argument. Outputs appear whole and in the order of the input.

Examples:
  ls *.png | ordo map -j8 -- convert {} {}.webp
      eight at a time, progress and messages in the order of the files
  ordo map --key 1 --retries 2 --timeout 30s --dlq failed.jsonl -- ./apply < events.txt
      events of one user (field 1) in turn, users side by side; what fails for good is kept
  ordo map --server -j4 --joblog jobs.log --resume -o out.txt -- ./model < lines.txt
      four copies of ./model answer line by line; after a crash run it again to continue

Exit status:
  0 to 100  the number of jobs that failed        127  COMMAND does not exist
  101       more than 100 jobs failed             130  stopped by SIGINT (143: by SIGTERM)
  126       COMMAND may not be executed           141  the reader of the output went away
  255       another error, wrong usage included
)";

inline constexpr const char* kServeExamples = R"(
Each setting may also come from the environment (ORDO_SERVE_DATA=/srv/ordo) or from the table
[serve] of the configuration (data = "/srv/ordo"), --config or ordo.toml where it exists; a flag
beats the environment, which beats the file. SIGTERM and Ctrl-C take no more, give back what is in
flight, store what was published, and end; a second one does not wait.

Examples:
  ordo serve
      on 127.0.0.1:8085, messages in ./ordo-data; the status page is http://127.0.0.1:8085/
  ordo serve --listen 127.0.0.1:0 --data /tmp/ordo --fsync os
      a free port, and as fast as it gets: a power cut loses the last half minute
  ordo serve --config ordo.toml --check
      say what is wrong with the configuration, and do nothing else

Exit status:
  0  stopped, and all that was published is stored      1  stopped, and some of it was not in time
  255  another error, wrong usage included
)";

inline constexpr const char* kGatewayExamples = R"(
Each setting may also come from the environment (ORDO_GATEWAY_BUDGET=64) or from the table
[gateway] of the configuration (budget = 64); a flag beats the environment, which beats the file.
The file, --config or ordo.toml where it exists, also has the routes and the risk limits; SIGHUP
reads those again. SIGTERM and Ctrl-C finish what was admitted; a second one does not wait for it.

Examples:
  ordo gateway
  printf 'r1 42 NEW ACME BUY 10 99.5\nr2 42 CANCEL\n' | nc -N 127.0.0.1 7070
      an order and its end, answered in that order
  ordo gateway --config gateway.toml --check
      say what is wrong with the configuration, and do nothing else

Exit status:
  0  stopped, and everything admitted was answered      1  stopped, and the rest was listed
  255  another error, wrong usage included
)";

inline constexpr const char* kClientExamples = R"(
Each line of standard input is '<correlation-id> <payload>'; its number is its request id. The
replies go to standard output as they come: those of one correlation id in order.

Examples:
  printf '42 NEW ACME BUY 10 99.5\n42 STATUS\n' | ordo gateway-client
  printf '0 QUOTE ACME 10\n' | ordo gateway-client --binary --connect 127.0.0.1:7070
  ordo gateway-client --raw < requests.txt
      the lines are sent as they are, request ids and all

Exit status:
  0  every reply was OK      1  some were REJ, or missing      255  another error
)";

inline constexpr const char* kExamples = R"(
Examples:
  seq 10 | ordo map -j4 -- sh -c 'sleep 0.$1; echo $1' sh
  ordo serve --listen 127.0.0.1:8085 --data ordo-data
  ordo gateway --listen 127.0.0.1:7070
  ordo map --help
  source <(ordo completion bash)
)";

inline constexpr const char* kDoctorExamples = R"(
With DIRECTORY: whether all data in it is there; the broker that uses it must be stopped. Without:
whether a broker could run here: settings, disk, memory, open files, port, data; and whether one
answers. Nothing is changed.

Examples:
  ordo doctor
      with the settings of ordo.toml and the environment
  ordo doctor --config /etc/ordo.toml
  ordo doctor /var/lib/ordo

Exit status:
  0  healthy      1  something is wrong, and was named      255  another error
)";

inline constexpr const char* kRepairExamples = R"(
The broker that uses DIRECTORY must be stopped.

Examples:
  ordo doctor /var/lib/ordo
      says what is missing
  ordo repair /var/lib/ordo
      what can be put right without losing anything
  ordo repair /var/lib/ordo --accept-loss
      only when doctor told what is missing and there is no better copy; make a copy first

Exit status:
  0  repaired      1  damaged, and the damage was named      255  another error
)";

inline constexpr const char* kConfigExamples = R"(
A flag beats the environment, which beats the file, which beats the default.

Examples:
  ordo config show --origin
  ordo config show serve --config /etc/ordo.toml
  ordo config show --json | jq -r 'select(.origin != "default") | .setting'

Exit status:
  0  all settings are good      1  some are not, and were named      255  the file cannot be read
)";

}  // namespace ordo::app
