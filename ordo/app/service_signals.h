// ServiceSignals: a service waits for what signals say instead of being interrupted by them.
//
//   const ServiceSignals signals;                     // first, before any thread is made
//   start();
//   signals.wait_for_stop([&] { reload(); });         // SIGHUP; returns on SIGTERM and SIGINT
//   stop();                                           // a further signal ends the process at once
//
// SIGPIPE is ignored: who writes is told.
//
// Threads: made and used by main().
#pragma once

#include <csignal>
#include <functional>

namespace ordo::app {

class ServiceSignals {
 public:
  ServiceSignals();
  ServiceSignals(const ServiceSignals&) = delete;
  ServiceSignals& operator=(const ServiceSignals&) = delete;
  ~ServiceSignals() = default;

  // Does on_hang_up() for each SIGHUP. When one says stop, further SIGTERM and SIGINT are let
  // through; SIGHUP stays unheard.
  void wait_for_stop(const std::function<void()>& on_hang_up) const;

 private:
  sigset_t watched_{};
};

}  // namespace ordo::app
