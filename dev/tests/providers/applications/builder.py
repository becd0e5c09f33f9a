"""Flask-AppBuilder, the sign-in of Superset and Airflow, with the settings of docs/integrations/applications.md."""

import sys

from flask import Flask
from flask_appbuilder import AppBuilder
from flask_appbuilder.utils.legacy import get_sqla_class

port, database, settings = sys.argv[1:]
app = Flask(__name__)
app.config.update(SECRET_KEY="for-the-length-of-a-test", SQLALCHEMY_DATABASE_URI=f"sqlite:///{database}")
app.config.from_pyfile(settings)
db = get_sqla_class()(app)
with app.app_context():
    AppBuilder(app, db.session)
app.run(host="127.0.0.1", port=int(port))
