// What the servers on libgrpc++ share: events of a completion queue, and how they say their port.
//
// Threads: an event happens on the thread that serves its queue.
// Bounds:  none; they serve one benchmark.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "bench/wire/plan.h"

namespace ordo::bench {

using Queue = grpc::ServerCompletionQueue;

// What a completion queue gives back.
class Event {
 public:
  virtual ~Event() = default;
  virtual void happen(bool is_ok) = 0;
};

inline void serve(Queue& queue) {
  void* tag = nullptr;
  bool is_ok = false;
  while (queue.Next(&tag, &is_ok))
    static_cast<Event*>(tag)->happen(is_ok);
}

inline void announce(int port) {
  if (port == 0) give_up("cannot listen");
  std::printf("listening 127.0.0.1:%d\n", port);
  std::fflush(stdout);
}

// A call that is answered at once; it asks for the next one of its kind itself.
template <class Service, class Request, class Response, class Answer>
class PlainCall final : public Event {
 public:
  using Ask = void (Service::*)(grpc::ServerContext*, Request*,
                                grpc::ServerAsyncResponseWriter<Response>*, grpc::CompletionQueue*,
                                Queue*, void*);

  PlainCall(Service& service, Queue& queue, Ask ask, Answer answer)
      : service_(service),
        queue_(queue),
        ask_(ask),
        answer_(answer) {
    (service_.*ask_)(&context_, &request_, &writer_, &queue_, &queue_, this);
  }

  void happen(bool is_ok) override {
    if (!is_ok || std::exchange(is_asked_, true)) {
      delete this;
      return;
    }
    new PlainCall(service_, queue_, ask_, answer_);
    answer_(request_, response_);
    writer_.Finish(response_, grpc::Status::OK, this);
  }

 private:
  Service& service_;
  Queue& queue_;
  const Ask ask_;
  const Answer answer_;
  grpc::ServerContext context_{};
  Request request_{};
  Response response_{};
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
  bool is_asked_ = false;
};

// Both serve until the process is killed.
[[noreturn]] void serve_broker(const std::string& path);
[[noreturn]] void serve_echo(const std::string& form);

}  // namespace ordo::bench
