module bench_dispatcher_go

go 1.19
