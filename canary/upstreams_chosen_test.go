package canary

// chosen are answers that must stay the same in every release: of ten instances, of a
// hundred, and of a and b with the weights 1 and 3.
var chosen = map[string][3]string{
	"a":                                    {"10.0.0.8:8080", "10.0.0.10:8080", "b"},
	"42":                                   {"10.0.0.10:8080", "10.0.0.96:8080", "b"},
	"user-1":                               {"10.0.0.7:8080", "10.0.0.11:8080", "b"},
	"user-2":                               {"10.0.0.2:8080", "10.0.0.42:8080", "b"},
	"user-3":                               {"10.0.0.10:8080", "10.0.0.94:8080", "a"},
	"alice@example.com":                    {"10.0.0.2:8080", "10.0.0.19:8080", "b"},
	"用户":                                   {"10.0.0.8:8080", "10.0.0.87:8080", "b"},
	"550e8400-e29b-41d4-a716-446655440000": {"10.0.0.10:8080", "10.0.0.3:8080", "b"},
}
