package main

func Example() {
	main()
	// Output:
	// 200 OK
	// gave up after 500ms
	// gave up after 500ms
	// gave up after 500ms
	// not even asked: breaker "shop": open (3 of 3 errors in a row)
	// not even asked: breaker "shop": open (3 of 3 errors in a row)
	// 200 OK
	// the breaker is closed
}
