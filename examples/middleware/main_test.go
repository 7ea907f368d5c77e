package main

func Example() {
	main()
	// Output:
	// /orders/0  200 the orders of yesterday
	// /orders/1  200 the orders of yesterday
	// /orders/2  200 the orders of yesterday
	// /orders/3  200 the orders of yesterday
	// /orders/4  200 the orders of yesterday
	// /orders/5  503 Service Unavailable
	// /orders/6  503 Service Unavailable
	// /users/1   200 user 1
	// /healthz   200 ok
	// GET /orders/{id} is open: 5 of 5 errors in a row
}
