// Lets a request pass if its X-Auth-Assertion is valid, and greets its user.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc"
	"gopkg.in/square/go-jose.v2"
)

var issuer, audience, keysURL = os.Getenv("VESTIBULE_ISSUER"), os.Getenv("AUDIENCE"), os.Getenv("KEYS_URL")

var verifier atomic.Pointer[oidc.IDTokenVerifier]

// renew makes a verifier without keys every five minutes: a verifier never forgets a key that you removed.
func renew() {
	client := oidc.ClientContext(context.Background(), &http.Client{Timeout: 5 * time.Second})
	now := func() time.Time { return time.Now().Add(-5 * time.Second) }
	rules := oidc.Config{ClientID: audience, SupportedSigningAlgs: []string{oidc.ES256}, Now: now}
	verifier.Store(oidc.NewVerifier(issuer, oidc.NewRemoteKeySet(client, keysURL), &rules))
	time.AfterFunc(5*time.Minute, renew)
}

type user struct {
	Subject   string `json:"sub"`
	Email     string `json:"email"`
	NotBefore int64  `json:"nbf"`
}

func readUser(request *http.Request) (found user, isValid bool) {
	assertion := strings.Join(request.Header.Values("X-Auth-Assertion"), ",") // several are no JWT
	token, err := verifier.Load().Verify(request.Context(), assertion)
	if err != nil || token.Claims(&found) != nil || found.NotBefore > time.Now().Unix()+5 {
		return found, false
	}
	signed, err := jose.ParseSigned(assertion)
	isTyped := err == nil && signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType] == "JWT"
	return found, isTyped && found.Subject != "" && found.Email != ""
}

func greet(response http.ResponseWriter, request *http.Request) {
	if found, isValid := readUser(request); isValid {
		fmt.Fprintf(response, "Hello %s\n", found.Email)
	} else {
		http.Error(response, "No valid assertion", http.StatusUnauthorized)
	}
}

func main() {
	if keysURL == "" {
		keysURL = issuer + "/.well-known/vestibule/jwks.json"
	}
	renew()
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(greet)))
}
