// Lets a request pass if its X-Auth-Assertion is valid, and greets its user.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"gopkg.in/square/go-jose.v2"
	"gopkg.in/square/go-jose.v2/jwt"
)

var issuer, audience, keysURL = os.Getenv("VESTIBULE_ISSUER"), os.Getenv("AUDIENCE"), os.Getenv("KEYS_URL")

type user struct {
	Subject string `json:"sub"`
	Email   string `json:"email"`
}

type keySet struct {
	sync.Mutex
	keys           jose.JSONWebKeySet
	asked, fetched time.Time
}

// find returns the keys with this ID. They live five minutes. An unknown ID fetches, at most every ten seconds.
func (set *keySet) find(id string) []jose.JSONWebKey {
	set.Lock()
	defer set.Unlock()
	if time.Since(set.fetched) > 5*time.Minute {
		set.keys = jose.JSONWebKeySet{}
	}
	if len(set.keys.Key(id)) == 0 && time.Since(set.asked) > 10*time.Second {
		set.asked = time.Now()
		client := http.Client{Timeout: 5 * time.Second}
		if answer, err := client.Get(keysURL); err == nil {
			defer answer.Body.Close()
			var keys jose.JSONWebKeySet
			if answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(&keys) == nil {
				set.keys, set.fetched = keys, set.asked
			}
		}
	}
	return set.keys.Key(id)
}

func (set *keySet) readUser(request *http.Request) (found user, err error) {
	values := request.Header.Values("X-Auth-Assertion")
	if len(values) != 1 {
		return found, errors.New("no assertion, or several")
	}
	token, err := jwt.ParseSigned(values[0])
	if err != nil {
		return found, err
	}
	header := token.Headers[0]
	keys := set.find(header.KeyID)
	if header.Algorithm != string(jose.ES256) || header.ExtraHeaders[jose.HeaderType] != "JWT" || len(keys) != 1 {
		return found, errors.New("another algorithm, type or key")
	}
	var claims jwt.Claims
	if err = token.Claims(keys[0].Key, &claims, &found); err != nil {
		return found, err
	}
	if claims.Expiry == nil || found.Subject == "" || found.Email == "" {
		return found, errors.New("a claim is missing")
	}
	expected := jwt.Expected{Issuer: issuer, Audience: jwt.Audience{audience}, Time: time.Now()}
	return found, claims.ValidateWithLeeway(expected, 5*time.Second)
}

type userKey struct{}

func requireUser(next http.Handler) http.Handler {
	var keys keySet
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		found, err := keys.readUser(request)
		if err != nil {
			http.Error(response, "No valid assertion", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(response, request.WithContext(context.WithValue(request.Context(), userKey{}, found)))
	})
}

func main() {
	if issuer == "" || audience == "" {
		log.Fatal("set VESTIBULE_ISSUER and AUDIENCE") // go-jose would skip these checks
	}
	if keysURL == "" {
		keysURL = issuer + "/.well-known/vestibule/jwks.json"
	}
	greet := func(response http.ResponseWriter, request *http.Request) {
		fmt.Fprintf(response, "Hello %s\n", request.Context().Value(userKey{}).(user).Email)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), requireUser(http.HandlerFunc(greet))))
}
