module ordo/bench/bus

go 1.18
